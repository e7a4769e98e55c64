# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# convertize.bash - what bash offers behind "convertize"; works with bash-completion and without

# Prints the services that systemd knows; the arguments are systemctl's.
_convertize_units() {
	systemctl "$@" list-unit-files --type=service --no-legend --no-pager 2>/dev/null | while read -r unit _; do
		printf '%s\n' "$unit"
	done
}

# Prints the services that are enabled, by their drop-ins in a directory.
_convertize_enabled() {
	local file

	for file in "$1"/*.service.d/zz-convertize.conf; do
		[[ -e $file ]] || continue
		file=${file%.d/*}
		printf '%s\n' "${file##*/}"
	done
}

# Prints the names of this host's network devices.
_convertize_devices() {
	local device

	for device in /sys/class/net/*; do
		printf '%s\n' "${device##*/}"
	done
}

# Sets words and cword: bash has split what it completes at colons and equals signs as well, as in --fix=run and ADDR:PORT.
_convertize_words() {
	local i word

	words=() cword=0
	for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
		word=${COMP_WORDS[i]}
		if ((i > 1)) && [[ $word == [:=]* || ${COMP_WORDS[i - 1]} == *[:=] ]]; then
			words[${#words[@]} - 1]+=$word
		else
			words+=("$word")
		fi
		((i == COMP_CWORD)) && cword=$((${#words[@]} - 1))
	done
}

# Offers a list of words.
_convertize_offer() {
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
}

# Offers the value of an option; returns 1 if the option takes none.
_convertize_value() {
	case $1 in
	--fallback) _convertize_offer 'direct none' ;;
	--silence) _convertize_offer 'auto never' ;;
	--method) _convertize_offer 'preload supervise' ;;
	--config) mapfile -t COMPREPLY < <(compgen -W none -- "$cur"; compgen -f -- "$cur") ;;
	--cache) mapfile -t COMPREPLY < <(compgen -W none -- "$cur"; compgen -d -- "$cur") ;;
	--executable | --library | --log) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	--device | --never-device | --backup-device) _convertize_offer "$(_convertize_devices)" ;;
	--converter | --port | --bypass | --paths | --cookie | --timeout | --withholding | --tables | --quota) ;;
	*) return 1 ;;
	esac
}

# Offers what may follow a command of convertize's own.
_convertize_command() {
	local command=$1 manager=() directory=/etc/systemd/system i
	local sets='--converter --port --bypass --paths --fallback --cookie --timeout --early-data --no-bypass-mptcp --withholding --silence
		--cache --log --warn --library --beside-vpn'
	local paths='--converter --port --cookie --timeout --json --manage --once --remove --dry-run --paths --device --never-device
		--backup-device --tables --quota --beside-vpn'
	local units='--user' all='--config --help --version'

	for ((i = 1; i < cword; i++)); do
		case ${words[i]} in
		--user) manager=(--user) directory=${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user ;;
		esac
	done
	case $command:$cur in
	check:-*) _convertize_offer "$sets $all --quiet --json --fix --fix=run" ;;
	enable:-*) _convertize_offer "$sets $all $units --quiet --session --dry-run --force" ;;
	disable:-*) _convertize_offer "$all $units --quiet --session --dry-run" ;;
	list:-*) _convertize_offer "$all $units" ;;
	environment:-*) _convertize_offer "$sets $all --shell" ;;
	status:-*) _convertize_offer "--converter --port --cache --watch --json $all" ;;
	top:-*) _convertize_offer "--converter --port --cache --watch $all" ;;
	paths:-*) _convertize_offer "$paths $all" ;;
	:-*) _convertize_offer "$sets $all --quiet --force --method --executable" ;;
	check:*) mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
	enable:*) _convertize_offer "$(_convertize_units "${manager[@]}")" ;;
	disable:*) _convertize_offer "$(_convertize_enabled "$directory")" ;;
	:*) mapfile -t COMPREPLY < <(compgen -W 'check enable disable list environment paths status top help version' -- "$cur"; compgen -c -- "$cur") ;;
	esac
}

# Offers what the program offers that is to be run, whose name is a word of COMP_WORDS.
_convertize_program() {
	if declare -F _comp_command_offset >/dev/null; then
		_comp_command_offset "$1"
	elif declare -F _command_offset >/dev/null; then
		_command_offset "$1"
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	fi
}

_convertize() {
	local cur words cword i command='' program=0 prefix

	_convertize_words
	cur=${words[cword]}
	for ((i = 1; i < cword; i++)); do
		case ${words[i]} in
		--) program=$((i + 1)) && break ;;
		--converter | --port | --bypass | --paths | --fallback | --cookie | --timeout | --withholding | --silence | --cache | --log | \
			--library | --method | --executable | --config) ((i++)) ;;
		-*) ;;
		check | enable | disable | list | environment | paths | status | top) command=${words[i]} && break ;;
		*) program=$i && break ;;
		esac
	done
	if ((program == cword)); then
		mapfile -t COMPREPLY < <(compgen -c -- "$cur")
	elif ((program)); then
		# its place in COMP_WORDS, which has more words
		for ((i = 1; i < COMP_CWORD; i++)); do
			[[ ${COMP_WORDS[i]} == "${words[program]}" ]] && break
		done
		_convertize_program "$i"
		return
	elif ((cword > 1)) && _convertize_value "${words[cword - 1]}"; then
		:
	elif [[ $cur == --*=* ]]; then
		# bash replaces only what stands behind the equals sign
		prefix=${cur%%=*} cur=${cur#*=}
		if [[ $prefix == --fix ]]; then
			_convertize_offer run
		else
			_convertize_value "$prefix"
		fi
	else
		_convertize_command "$command"
	fi
}

complete -F _convertize convertize
