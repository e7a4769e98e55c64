# SPDX-License-Identifier: BSD-3-Clause
# what distributions and hosts of containers take: packages and images that are built and used, each by a command of its own
EXTRA_DIST += tests/packages/README.md tests/packages/abuild_stubs.sh tests/packages/alpine tests/packages/arch \
	tests/packages/container tests/packages/place.py tests/packages/rpm tests/packages/rpm.macros tests/packages/openwrt_stubs.sh
# This one needs nothing but a shell, and is part of "make check".
dist_check_SCRIPTS += tests/packages/openwrt.py
TESTS += tests/packages/openwrt.py
