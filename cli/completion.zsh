#compdef dbslower dbstat tplist
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Completion of dbslower's command line for zsh, installed as _dbslower. The program itself lists the
# candidates: see cli/option/complete.h.

# The probes of the files, libraries and processes in the command line, as trace accepts them.
_dbslower_probes()
{
	local tool=$1 word before="" line
	local -a file names

	shift
	for word; do
		case $before in
		-l | --lib) file=(-l "$word") ;;
		-p | --pid) (($#file)) || file=(-p "$word") ;;
		*) [[ $word == */* && $word != *:* ]] && file=("$word") ;;
		esac
		before=$word
	done
	(($#file)) || return
	# the names come from a file: accept only those without special characters of the shell
	for line in ${(f)"$($tool list $file 2>/dev/null)"}; do
		line=${line##* }
		[[ $line =~ '^[A-Za-z0-9_.@-]+:[A-Za-z0-9_.@-]+$' ]] && names+=("$line")
	done
	compadd -a names
}

_dbslower()
{
	local line word files="" probes="" list=""
	local -a typed words_ described

	typed=("${(@Q)words[1,CURRENT]}")
	if [[ $typed[-1] == --*=* ]]; then
		compset -P 1 '*='
		typed[-1]=("${typed[-1]%%=*}" "${typed[-1]#*=}")
	fi
	for line in ${(f)"$($typed[1] --complete "${typed[@]}" 2>/dev/null)"}; do
		case $line in
		:files) files=1 ;;
		:probes) probes=1 ;;
		":pids "*) words_+=(${(f)"$(pgrep -x "${line#:pids }" 2>/dev/null)"}) ;;
		:list) list=1 ;;
		*$'\t'*)
			for word in ${=line%%$'\t'*}; do
				described+=("$word:${line#*$'\t'}")
			done
			;;
		*) words_+=(${=line//,/ }) ;;
		esac
	done
	if [[ $probes ]]; then
		_dbslower_probes "${(@)typed[1]}" "${(@)typed[3,-2]}" && return
		files=1
	fi
	if [[ $list ]]; then
		compset -P '*,'
		compadd -S "" -a words_
	else
		(($#words_)) && compadd -a words_
	fi
	(($#described)) && _describe candidate described
	[[ $files ]] && _files
}

_dbslower "$@"
