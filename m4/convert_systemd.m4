# SPDX-License-Identifier: BSD-3-Clause
# convert_systemd.m4 - where files for systemd and its companions go

# CONVERT_SYSTEMD_DIR(NAME, VARIABLE, WHAT)
# -----------------------------------------
# --with-NAME=DIR, and substitutes DIR for NAME; sets with_NAME to "no" where nothing is to be installed. By default it is what
# VARIABLE of systemd.pc says, with the prefix of this package in place of systemd's own: systemd looks in /usr/local as well, and
# who installs elsewhere, as "make distcheck" does, has no business in /usr.
AC_DEFUN([CONVERT_SYSTEMD_DIR], [
  AC_ARG_WITH([$1],
    [AS_HELP_STRING([--with-$1=DIR],
      [install $3 there; "no": don't (default: below PREFIX, where systemd looks, if it is installed)])],
    [], [with_$1=yes])
  AS_IF([test "x$with_$1" = xyes], [
    with_$1=`$PKG_CONFIG --define-variable=prefix=/PREFIX --define-variable=rootprefix=/PREFIX \
      --define-variable=root_prefix=/PREFIX --variable=$2 systemd 2>/dev/null | $SED 's|^/PREFIX|${prefix}|'`
    AS_IF([test "x$with_$1" = x], [with_$1=no])])
  AC_SUBST([$1], [$with_$1])
])
