# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# convertd.bash - what bash offers behind "convertd"; works with bash-completion and without

# Offers the value of an option; returns 1 if the option takes none.
_convertd_value() {
	local congestion

	case $1 in
	--hold-syn) mapfile -t COMPREPLY < <(compgen -W 'auto on off' -- "$cur") ;;
	--log-level) mapfile -t COMPREPLY < <(compgen -W 'error warning info debug' -- "$cur") ;;
	--log-format) mapfile -t COMPREPLY < <(compgen -W 'text json' -- "$cur") ;;
	--congestion-client | --congestion-server)
		read -r congestion 2>/dev/null </proc/sys/net/ipv4/tcp_available_congestion_control
		mapfile -t COMPREPLY < <(compgen -W "$congestion" -- "$cur") ;;
	--user) mapfile -t COMPREPLY < <(compgen -u -- "$cur") ;;
	--config | --cookie-key | --cookie-list | --make-key) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	--listen | --shared-address | --hold-time | --allow-client | --deny-client | --allow-destination | --deny-destination | \
		--own-address | --source | --new-client | --remove-client | --cookie-lifetime | --cookie-demand | --max-* | --client-prefix-* | --retry-delay | *-timeout | \
		--workers | --log-rate | --metrics) ;;
	*) return 1 ;;
	esac
}

_convertd() {
	local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local options='--listen --shared-address --no-silence --hold-syn --hold-time --drop-foreign-syns
		--allow-client --deny-client --allow-destination --deny-destination --own-address --no-hairpin --source --preserve-client-address
		--cookie-key --cookie-lifetime --cookie-list --cookie-demand --max-connections --max-connections-per-client --max-pending
		--max-pending-per-client --max-memory --max-memory-per-client --max-errors --max-errors-per-client --client-prefix-v4
		--client-prefix-v6 --retry-delay --request-timeout --connect-timeout --stall-timeout --half-close-timeout --idle-timeout
		--drain-timeout --user --no-syscall-filter --no-landlock --workers --congestion-client --congestion-server --log-level
		--log-format --log-rate --metrics --config --check-config --make-key --new-client
		--remove-client --help --version'

	COMPREPLY=()
	# bash has split "--option=value" at the equals sign
	if [[ $cur == = ]]; then
		cur=
	elif [[ $before == = ]]; then
		before=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	_convertd_value "$before" && return
	if [[ ${COMP_WORDS[1]} == status ]] && ((COMP_CWORD > 1)); then
		options='--config --metrics'
	elif ((COMP_CWORD == 1)); then
		options="status $options"
	fi
	# no other word but the first one stands without an option
	if ((COMP_CWORD == 1)) || [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
	fi
}

complete -F _convertd convertd
