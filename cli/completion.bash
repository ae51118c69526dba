# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Completion of dbslower's command line for bash. The program itself lists the candidates: see
# cli/option/complete.h.

# The probes of the files, libraries and processes in the command line, as trace accepts them.
_dbslower_probes()
{
	local cur=$1 word before name tool=${COMP_WORDS[0]} file=() i

	for ((i = 2; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		before=${COMP_WORDS[i - 1]}
		case $before in
		-l | --lib) file=(-l "$word") ;;
		-p | --pid) ((${#file[@]})) || file=(-p "$word") ;;
		*) [[ $word == */* && $word != *:* ]] && file=("$word") ;;
		esac
	done
	((${#file[@]})) || return
	# bash splits words at a colon
	before=""
	if [[ $cur == ":" ]]; then
		before=${COMP_WORDS[COMP_CWORD - 1]}:
		cur=""
	elif [[ ${COMP_WORDS[COMP_CWORD - 1]} == ":" ]]; then
		before=${COMP_WORDS[COMP_CWORD - 2]}:
	fi
	# the names come from a file: accept only those without special characters of the shell
	while read -r name; do
		name=${name##* }
		[[ $name =~ ^[A-Za-z0-9_.@-]+:[A-Za-z0-9_.@-]+$ && $name == "$before$cur"* ]] &&
			COMPREPLY+=("${name#"$before"}")
	done < <("$tool" list "${file[@]}" 2>/dev/null | sort -u)
}

_dbslower()
{
	local cur=${COMP_WORDS[COMP_CWORD]} line words="" before="" files="" probes=""

	COMPREPLY=()
	while read -r line; do
		# without the description
		line=${line%%$'\t'*}
		case $line in
		:files) files=1 ;;
		:probes) probes=1 ;;
		":pids "*) words+=" $(pgrep -x "${line#:pids }" 2>/dev/null)" ;;
		:list)
			compopt -o nospace
			[[ $cur == *,* ]] && before=${cur%,*},
			;;
		*) words+=" ${line//,/ }" ;;
		esac
	done < <("${COMP_WORDS[0]}" --complete "${COMP_WORDS[@]:0:COMP_CWORD+1}" 2>/dev/null)
	if [[ $probes ]]; then
		_dbslower_probes "$cur"
		((${#COMPREPLY[@]})) && return
		files=1
	fi
	# bash splits --name=value at the sign
	[[ $cur == "=" ]] && cur=""
	mapfile -t COMPREPLY < <(compgen -P "$before" -W "$words" -- "${cur#"$before"}")
	if [[ $files ]]; then
		compopt -o filenames
		mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$cur")
	fi
}

complete -F _dbslower dbslower tplist dbstat
