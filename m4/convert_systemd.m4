# SPDX-License-Identifier: BSD-3-Clause
# convert_systemd.m4 - where files for systemd and its companions go

# CONVERT_SYSTEMD_DIR(NAME, DIRECTORY, WHAT)
# ------------------------------------------
# --with-NAME=DIR, and substitutes DIR for NAME; sets with_NAME to "no" where nothing is to be installed. By default it is
# DIRECTORY below the prefix. systemd.unit(5), sysctl.d(5) and sysusers.d(5) name these directories for /usr and /usr/local, and
# they are the same on every distribution: so systemd.pc isn't asked, which Debian keeps in a package that few have, and which a
# build for another host lacks.
AC_DEFUN([CONVERT_SYSTEMD_DIR], [
  AC_ARG_WITH([$1],
    [AS_HELP_STRING([--with-$1=DIR],
      [install $3 there; "no": don't (default: PREFIX/$2)])],
    [], [with_$1=yes])
  AS_CASE([$with_$1],
    [yes], [with_$1='${prefix}/$2'],
    [no|/*|'$'*], [],
    [AC_MSG_ERROR([--with-$1=$with_$1: takes an absolute directory, yes or no])])
  AC_SUBST([$1], [$with_$1])
])

# CONVERT_SYSTEMD_SEARCHED
# ------------------------
# To be called after all CONVERT_SYSTEMD_DIR. Warns of directories in which systemd doesn't look, which are those below a prefix
# that is neither /usr nor /usr/local.
AC_DEFUN([CONVERT_SYSTEMD_SEARCHED], [
  AS_CASE([$prefix],
    [NONE|/usr|/usr/local|/], [],
    [AS_CASE([" $with_systemdsystemunitdir $with_sysctldir $with_sysusersdir"],
      [*" \${prefix}/"*],
      [AC_MSG_WARN([systemd doesn't look for units, users and sysctls below $prefix: see --with-systemdsystemunitdir, --with-sysusersdir and --with-sysctldir (below /etc, say), or "systemctl link" what is installed])])])
])

# CONVERT_SYSTEMD_SOCKET_UNIT
# ---------------------------
# --enable-socket-unit, and the conditional INSTALL_SOCKET_UNIT. By default it is installed where systemd is known to be 257 or
# newer: earlier ones make plain TCP sockets of it, and distributions start what is there. Sets convert_socket_unit to what the
# summary says.
AC_DEFUN([CONVERT_SYSTEMD_SOCKET_UNIT], [
  AC_ARG_ENABLE([socket-unit],
    [AS_HELP_STRING([--enable-socket-unit],
      [install convertd.socket (default: if systemd is found to be 257 or newer, which can make MPTCP sockets)])],
    [AS_CASE([$enableval], [yes|no], [],
      [AC_MSG_ERROR([--enable-socket-unit=$enableval: takes yes or no])])],
    [enable_socket_unit=auto])
  convert_socket_unit=$enable_socket_unit
  AS_IF([test "x$with_systemdsystemunitdir" = xno],
    [enable_socket_unit=no
     convert_socket_unit=no],
    [test "x$enable_socket_unit" = xauto], [
    AC_MSG_CHECKING([for systemd's version])
    convert_systemd=`$PKG_CONFIG --modversion systemd 2>/dev/null | $SED 's/@<:@^0-9@:>@.*//'`
    # The package may be built for another host than this one.
    AS_IF([test "x$convert_systemd" = x && test "x$cross_compiling" != xyes],
      [convert_systemd=`systemctl --version 2>/dev/null | $SED -n 's/^systemd \(@<:@0-9@:>@*\).*/\1/p'`])
    AC_MSG_RESULT([${convert_systemd:-unknown}])
    AS_IF([test "${convert_systemd:-0}" -ge 257],
      [enable_socket_unit=yes
       convert_socket_unit="yes (systemd $convert_systemd)"],
      [enable_socket_unit=no
       convert_socket_unit="no (needs systemd 257, has ${convert_systemd:-an unknown version}; --enable-socket-unit)"])])
  AM_CONDITIONAL([INSTALL_SOCKET_UNIT], [test "x$enable_socket_unit" = xyes])
])
