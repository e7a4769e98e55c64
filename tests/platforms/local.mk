# SPDX-License-Identifier: BSD-3-Clause
# other C libraries and architectures, see README.md: run by hand, each a command of its own
EXTRA_DIST += tests/platforms/README.md \
	tests/platforms/arm64 \
	tests/platforms/i386 \
	tests/platforms/musl \
	tests/platforms/one_connection.py \
	tests/platforms/platform_tools.py \
	tests/platforms/qemu_cookie.c
