# SPDX-License-Identifier: BSD-3-Clause
# convert_constant.m4 - kernel constants that older C library headers lack

# CONVERT_CONSTANT(NAME, VALUE, HEADERS)
# --------------------------------------
# Defines NAME as VALUE in config.h where HEADERS don't declare it. The kernel's
# ABI fixes the value, so that a build on old headers still uses a new kernel.
AC_DEFUN([CONVERT_CONSTANT], [
  AC_CHECK_DECL([$1], [], [AC_DEFINE([$1], [$2], [from the kernel's ABI: this C library's headers lack it])], [$3])
])
