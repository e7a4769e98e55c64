# shellcheck shell=sh
# SPDX-License-Identifier: BSD-3-Clause
# openwrt_stubs.sh - stand-ins for OpenWrt's rc.common, functions.sh and procd.sh, as far as convert.init uses them
#
# They say on standard output what they are called with. UCI_FILE names the configuration; RUNNING says that procd runs the service.
# /lib/functions.sh reads a file of UCI as these do: config, option and list are functions that call config_cb, option_cb and list_cb.

config() {
	config_cb "$1" "${2-}"
}

option() {
	option_cb "$1" "$2"
}

list() {
	list_cb "$1" "$2"
}

config_load() {
	# shellcheck disable=SC1090 # a file of the test's
	. "$UCI_FILE"
	config_cb
}

logger() {
	echo "log: $*"
}

chown() {
	echo "chown $*"
}

extra_command() {
	:
}

start() {
	start_service "$@"
}

procd_running() {
	[ -n "${RUNNING-}" ]
}

for name in open_instance close_instance set_param add_jail add_jail_mount add_jail_mount_rw send_signal add_reload_trigger; do
	eval "procd_$name() { echo \"$name \$*\"; }"
done
