# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Completion of dbslower's command line for bash.

_dbslower_columns()
{
	local columns="time pid tid ms user db client container conn rows status errno engine query"
	columns+=" cpu runqueue disk fsync lock lwlock futex network sleep ipc other"
	columns+=" parse rewrite plan execute"
	local before=""

	# only the word behind the last comma is to be completed
	[[ $1 == *,* ]] && before=${1%,*},
	mapfile -t COMPREPLY < <(compgen -P "$before" -W "$columns" -- "${1##*,}")
	compopt -o nospace
}

_dbslower_pids()
{
	local before=""

	[[ $1 == *,* ]] && before=${1%,*},
	mapfile -t COMPREPLY < <(compgen -P "$before" \
		-W "$(pgrep -x 'postgres|mysqld|mariadbd' 2>/dev/null)" -- "${1##*,}")
}

_dbslower_files()
{
	compopt -o filenames
	mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

# The probes of the files, libraries and processes that the line names, as trace takes them.
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
	# bash makes words of their own of what stands before and behind a colon
	before=""
	if [[ $cur == ":" ]]; then
		before=${COMP_WORDS[COMP_CWORD - 1]}:
		cur=""
	elif [[ ${COMP_WORDS[COMP_CWORD - 1]} == ":" ]]; then
		before=${COMP_WORDS[COMP_CWORD - 2]}:
	fi
	# names are a file's: only such as mean nothing to the shell
	while read -r name; do
		name=${name##* }
		[[ $name =~ ^[A-Za-z0-9_.@-]+:[A-Za-z0-9_.@-]+$ && $name == "$before$cur"* ]] &&
			COMPREPLY+=("${name#"$before"}")
	done < <("$tool" list "${file[@]}" 2>/dev/null | sort -u)
}

_dbslower()
{
	local cur=${COMP_WORDS[COMP_CWORD]} option="" command=slow

	[[ ${COMP_WORDS[1]} == stat || ${COMP_WORDS[0]##*/} == dbstat ]] && command=stat
	[[ ${COMP_WORDS[1]} == top ]] && command=top
	[[ ${COMP_WORDS[1]} == trace ]] && command=trace
	[[ ${COMP_WORDS[1]} == locks ]] && command=locks
	[[ ${COMP_WORDS[1]} == doctor ]] && command=doctor
	[[ ${COMP_WORDS[1]} == list || ${COMP_WORDS[0]##*/} == tplist ]] && command=list

	COMPREPLY=()
	((COMP_CWORD)) && option=${COMP_WORDS[COMP_CWORD - 1]}
	# bash makes words of its own of --name=value: --name, =, value
	if [[ $cur == "=" ]]; then
		cur=""
	elif [[ $option == "=" ]] && ((COMP_CWORD > 1)); then
		option=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	case $option in
	-o | --columns) _dbslower_columns "$cur" ;;
	-p | --pid) _dbslower_pids "$cur" ;;
	-x | --path | -l | --lib | --dot | --otlp) _dbslower_files "$cur" ;;
	--sort) mapfile -t COMPREPLY < <(compgen -W "total calls mean p95 p99 max rows errors
		cpu runqueue disk fsync lock lwlock futex network sleep ipc other" -- "$cur") ;;
	--lines | --args | --hist | --max) ;;
	--wait) mapfile -t COMPREPLY < <(compgen -W "cpu runqueue disk fsync lock lwlock futex network sleep ipc other
		pread64 pwrite64 fdatasync epoll_wait page_fault" -- "$cur") ;;
	--by) mapfile -t COMPREPLY < <(compgen -W "command db user status" -- "$cur") ;;
	--count) [[ $command == trace ]] && _dbslower_probes "$cur" ;;
	-d | --duration | -i | --interval | -m | --min | -n | --text | --user | --db | --match | --container | --start | --done | --text-arg) ;;
	*)
		if [[ $command == list && $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "-h --help --json -l --lib -p --pid
				-v --verbose -V --version" -- "$cur")
		elif [[ $command == doctor && $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "-h --help --json --self-test
				-V --version" -- "$cur")
		elif [[ $command == @(list|doctor) && ($cur == */* || COMP_CWORD -gt 1) ]]; then
			_dbslower_files "$cur"
		elif [[ $command == trace && $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "--args --count -d --duration -h --help
				--hist --json -l --lib -n --max -p --pid --ret --strict -T --wall
				--text -v --verbose -V --version --keep-privileges" -- "$cur")
		elif [[ $command == trace && $cur != */* ]] && ((COMP_CWORD > 1)); then
			_dbslower_probes "$cur"
			((${#COMPREPLY[@]})) || _dbslower_files "$cur"
		elif [[ $command == trace ]] && ((COMP_CWORD > 1)); then
			_dbslower_files "$cur"
		elif [[ $command == stat && $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "--by -d --duration -h --help -i
				--interval --json -m --min -n --count -p --pid --strict -u
				--microseconds -v --verbose -V --version -x --path --start --done
				--text-arg --match --wait --keep-privileges" -- "$cur")
		elif [[ $command == top && $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "-d --duration -h --help -i --interval
				--json --lines -m --min -n --count -p --pid --sort --strict -v
				--verbose -V --version -x --path --start --done --text-arg --user
				--db --match --container --text --redact --use --why --keep-privileges" \
				-- "$cur")
		elif [[ $command == locks && $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "-d --duration --dot -h --help --json
				-m --min -n --count -p --pid --stat --strict -t --wall --text -v
				--verbose -V --version -x --path --redact --keep-privileges" -- "$cur")
		elif [[ $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "-d --duration -h --help -m --min -n
				--count -o --columns -p --pid -t --wall -v --verbose -V --version
				-x --path --redact --keep-privileges --json --otlp --phases --strict --text --use --user --why
				--db --match --container --start --done --text-arg" -- "$cur")
		else
			mapfile -t COMPREPLY < <(compgen -W "mysql postgres
				$( ((COMP_CWORD == 1)) && echo slow stat top locks trace list doctor)" -- "$cur")
		fi
		;;
	esac
}

complete -F _dbslower dbslower tplist dbstat
