# SPDX-License-Identifier: BSD-3-Clause
# convert_warnings.m4 - compiler warnings, as errors only where asked

# CONVERT_WARNINGS
# ----------------
# Sets CONVERT_CFLAGS to the warnings that this compiler knows among those that
# the project is kept free of. --enable-werror turns them into errors, and has the shim
# abort a program in which it finds a fault of its own: for CI and developers, never for a release that somebody builds with another compiler.
AC_DEFUN([CONVERT_WARNINGS], [
  AC_ARG_ENABLE([werror],
    [AS_HELP_STRING([--enable-werror], [treat compiler warnings as errors (CI, developers)])],
    [AS_CASE([$enableval], [yes|no], [],
      [AC_MSG_ERROR([--enable-werror=$enableval: takes yes or no])])],
    [enable_werror=no])
  CONVERT_CFLAGS=
  for convert_flag in -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
      -Wold-style-definition -Wpointer-arith -Wwrite-strings -Wundef -Wvla \
      -Wformat=2 -Wimplicit-fallthrough -Wnull-dereference; do
    AS_VAR_PUSHDEF([cv], [convert_cv_cflag_$convert_flag])
    AC_CACHE_CHECK([whether $CC takes $convert_flag], [cv], [
      convert_saved_CFLAGS=$CFLAGS
      CFLAGS="$CFLAGS -Werror $convert_flag"
      AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [AS_VAR_SET([cv], [yes])], [AS_VAR_SET([cv], [no])])
      CFLAGS=$convert_saved_CFLAGS])
    AS_VAR_IF([cv], [yes], [CONVERT_CFLAGS="$CONVERT_CFLAGS $convert_flag"])
    AS_VAR_POPDEF([cv])
  done
  AS_IF([test "x$enable_werror" = xyes], [
    CONVERT_CFLAGS="$CONVERT_CFLAGS -Werror"
    AC_DEFINE([WITH_ASSERTIONS], [1], [a fault of the library aborts the program, which its users want to go on])])
  AC_SUBST([CONVERT_CFLAGS])
])
