# SPDX-License-Identifier: BSD-3-Clause
# tests/kernels: the lab's tests on the kernels that users have, run by hand
EXTRA_DIST += \
	tests/kernels \
	tests/kernellab/__init__.py \
	tests/kernellab/emulator.py \
	tests/kernellab/guest.py \
	tests/kernellab/guest.sh \
	tests/kernellab/machine.py \
	tests/kernellab/packages.py \
	tests/kernellab/results.py \
	tests/kernellab/usermode.config \
	tests/kernellab/usermode.py \
	tests/kernellab/usermode.sh
