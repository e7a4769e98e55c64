# SPDX-License-Identifier: BSD-3-Clause
# convert_hardening.m4 - what compiler and linker offer against attackers

# CONVERT_HARDENING
# -----------------
# Sets HARDENING_CPPFLAGS, HARDENING_CFLAGS and HARDENING_LDFLAGS to those flags that this compiler and this linker take among
# what Debian (dpkg-buildflags with hardening=+all), Fedora (redhat-rpm-config) and Alpine build their packages with, and
# what has been found to cost nothing here (doc/decisions.md has the measurements). They are on by default, in release tarballs too;
# --disable-hardening leaves them out. Sets convert_hardening to what the summary says of it.
#
# The builder's CPPFLAGS, CFLAGS and LDFLAGS stand behind these on every command line and so win: -fno-stack-protector,
# -fcf-protection=none, -Wl,-z,lazy. Two things don't work by order alone and are left to the builder who names them:
# _FORTIFY_SOURCE (a second definition is a warning) and whether programs are position-independent (half of it is no program).
AC_DEFUN([CONVERT_HARDENING], [
  AC_REQUIRE([CONVERT_SANITIZERS])
  AC_ARG_ENABLE([hardening],
    [AS_HELP_STRING([--disable-hardening],
      [leave out what compiler and linker offer against attackers (default: all that they take; yours win)])],
    [AS_CASE([$enableval], [yes|no], [],
      [AC_MSG_ERROR([--enable-hardening=$enableval: takes yes or no])])],
    [enable_hardening=yes])
  HARDENING_CPPFLAGS=
  HARDENING_CFLAGS=
  HARDENING_LDFLAGS=
  convert_hardening=" no"
  AS_IF([test "x$enable_hardening" = xyes], [
    convert_hardening=
    _CONVERT_FORTIFY
    # branch protection: the first flag is for x86, the second for 64-bit ARM
    _CONVERT_HARDENING_FLAGS([CFLAGS], [-fstack-protector-strong -fstack-clash-protection -fcf-protection
      -mbranch-protection=standard -ftrivial-auto-var-init=zero -fno-strict-overflow -fno-delete-null-pointer-checks])
    _CONVERT_HARDENING_FLAGS([LDFLAGS], [-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,-z,separate-code -Wl,--as-needed])
    _CONVERT_PIE
  ])
  AC_SUBST([enable_hardening])
  AC_SUBST([HARDENING_CPPFLAGS])
  AC_SUBST([HARDENING_CFLAGS])
  AC_SUBST([HARDENING_LDFLAGS])
])

# _CONVERT_HARDENING_FLAGS(CFLAGS | LDFLAGS, FLAGS)
# -------------------------------------------------
# Adds to HARDENING_CFLAGS or HARDENING_LDFLAGS each of FLAGS with which a program is compiled and linked without a warning
# (some compilers and linkers only warn of what they don't know).
AC_DEFUN([_CONVERT_HARDENING_FLAGS], [
  for convert_flag in m4_normalize([$2]); do
    AS_VAR_PUSHDEF([cv], [convert_cv_hardening_$convert_flag])
    AC_CACHE_CHECK([whether programs can be built with $convert_flag], [cv], [
      convert_saved_CFLAGS=$CFLAGS
      convert_saved_LDFLAGS=$LDFLAGS
      CFLAGS="-Werror $CFLAGS"
      $1="$convert_flag $[]$1"
      m4_if([$1], [LDFLAGS], [LDFLAGS="-Wl,--fatal-warnings $LDFLAGS"])
      # The buffer on the stack is there since a stack protector needs help from the C library.
      AC_LINK_IFELSE([AC_LANG_PROGRAM([], [[volatile char text[64]; text[63] = 0; return text[63];]])],
        [AS_VAR_SET([cv], [yes])], [AS_VAR_SET([cv], [no])])
      CFLAGS=$convert_saved_CFLAGS
      LDFLAGS=$convert_saved_LDFLAGS])
    AS_VAR_IF([cv], [yes], [
      AS_VAR_APPEND([HARDENING_$1], [" $convert_flag"])
      AS_VAR_APPEND([convert_hardening], [" $convert_flag"])])
    AS_VAR_POPDEF([cv])
  done
])

# _CONVERT_FORTIFY
# ----------------
# _FORTIFY_SOURCE=3, or 2 where the C library has no more. It does nothing but warn without optimization, and sanitizers see
# more without it. Whoever defines or undefines it, be it the builder or the compiler by itself, has decided.
AC_DEFUN([_CONVERT_FORTIFY], [
  AC_CACHE_CHECK([which level of _FORTIFY_SOURCE to add], [convert_cv_fortify], [
    convert_cv_fortify=none
    AS_CASE([" $CC $CPPFLAGS $CFLAGS $SANITIZER_CFLAGS "],
      [*_FORTIFY_SOURCE*|*-fsanitize=*|*-fhardened*], [],
      [AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
#if defined _FORTIFY_SOURCE || !defined __OPTIMIZE__
# error "has been decided, or does nothing"
#endif]])], [
        convert_saved_CPPFLAGS=$CPPFLAGS
        convert_saved_CFLAGS=$CFLAGS
        CFLAGS="-Werror $CFLAGS"
        for convert_level in 3 2; do
          CPPFLAGS="-D_FORTIFY_SOURCE=$convert_level $convert_saved_CPPFLAGS"
          # The C library's headers warn of a level that they don't have, and define the highest one that they have.
          AC_LINK_IFELSE([AC_LANG_PROGRAM([[
#include <string.h>
#if defined __GLIBC__ && defined __USE_FORTIFY_LEVEL && __USE_FORTIFY_LEVEL < $convert_level
# error "the C library has no such level"
#endif]], [[char text[8]; memset(text, 0, sizeof(text)); return text[7];]])],
            [convert_cv_fortify=$convert_level; break])
        done
        CPPFLAGS=$convert_saved_CPPFLAGS
        CFLAGS=$convert_saved_CFLAGS])])])
  AS_IF([test "x$convert_cv_fortify" != xnone], [
    HARDENING_CPPFLAGS="-D_FORTIFY_SOURCE=$convert_cv_fortify"
    AS_VAR_APPEND([convert_hardening], [" $HARDENING_CPPFLAGS"])])
])

# _CONVERT_PIE
# ------------
# Makes programs position-independent, so that they are loaded at addresses that no attacker knows. libtool compiles what goes
# into libraries with -fPIC behind our -fPIE, and links shared libraries without our -pie.
AC_DEFUN([_CONVERT_PIE], [
  AC_CACHE_CHECK([whether to build position-independent programs], [convert_cv_pie], [
    AS_CASE([" $CFLAGS $LDFLAGS "],
      [*" -no-pie "*|*" -nopie "*|*" -fno-pie "*|*" -fno-PIE "*|*" -fno-pic "*|*" -fno-PIC "*|*" -static"*],
      [convert_cv_pie="no, by your flags"],
      [convert_saved_CFLAGS=$CFLAGS
       convert_saved_LDFLAGS=$LDFLAGS
       CFLAGS="-Werror -fPIE $CFLAGS"
       LDFLAGS="-pie $LDFLAGS"
       AC_LINK_IFELSE([AC_LANG_PROGRAM()], [convert_cv_pie=yes], [convert_cv_pie=no])
       CFLAGS=$convert_saved_CFLAGS
       LDFLAGS=$convert_saved_LDFLAGS])])
  AS_IF([test "x$convert_cv_pie" = xyes], [
    HARDENING_CFLAGS="$HARDENING_CFLAGS -fPIE"
    HARDENING_LDFLAGS="$HARDENING_LDFLAGS -pie"
    AS_VAR_APPEND([convert_hardening], [" -fPIE -pie"])])
])
