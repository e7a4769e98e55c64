# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# convertgw.bash - what bash offers behind "convertgw"; works with bash-completion and without

# Offers the value of an option; returns 1 if the option takes none.
_convertgw_value() {
	case $1 in
	--lan) mapfile -t COMPREPLY < <(cd /sys/class/net && compgen -G "$cur*") ;;
	--log-level) mapfile -t COMPREPLY < <(compgen -W 'error warning info debug' -- "$cur") ;;
	--log-format) mapfile -t COMPREPLY < <(compgen -W 'text json' -- "$cur") ;;
	--config | --cookie-file) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	--cache) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
	--convert | --route | --require) mapfile -t COMPREPLY < <(compgen -W 'all client destination device dscp mark' -- "$cur") ;;
	--converter | --cookie | --paths | --max-* | --client-prefix-* | *-timeout | --mark | --table | --queue | --port | --workers | \
		--log-rate | --metrics) ;;
	*) return 1 ;;
	esac
}

_convertgw() {
	local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local options='--lan --host --convert --route --require --refuse-quic --converter --cookie --cookie-file --paths --converter-timeout
		--cache --max-connections --max-connections-per-client --max-pending --max-pending-per-client
		--client-prefix-v4 --client-prefix-v6 --connect-timeout --stall-timeout --half-close-timeout --idle-timeout
		--drain-timeout --mark --table --queue --port --config --check-config --workers --log-level --log-format --log-rate
		--metrics --help --version'

	COMPREPLY=()
	# bash has split "--option=value" at the equals sign
	if [[ $cur == = ]]; then
		cur=
	elif [[ $before == = ]]; then
		before=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	_convertgw_value "$before" && return
	((COMP_CWORD > 1)) || options="status $options"
	# no other word but the first one stands without an option
	if ((COMP_CWORD == 1)) || [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
	fi
}

complete -F _convertgw convertgw
