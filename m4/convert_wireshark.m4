# SPDX-License-Identifier: BSD-3-Clause
# convert_wireshark.m4 - where the dissector for Wireshark goes

# CONVERT_WIRESHARK_DIR
# ---------------------
# --with-wiresharkplugindir=DIR, substituted as wiresharkplugindir, and the conditional INSTALL_DISSECTOR. The default is the folder
# in which Wireshark of the same prefix looks for everybody's Lua plugins. wireshark.pc isn't asked: it names the folder of a version,
# for plugins in C, and the next version wouldn't find the dissector there.
AC_DEFUN([CONVERT_WIRESHARK_DIR], [
  AC_ARG_WITH([wiresharkplugindir],
    [AS_HELP_STRING([--with-wiresharkplugindir=DIR],
      [install the dissector for Wireshark there; "no": don't (default: LIBDIR/wireshark/plugins)])],
    [], [with_wiresharkplugindir=yes])
  AS_CASE([$with_wiresharkplugindir],
    [yes], [with_wiresharkplugindir='${libdir}/wireshark/plugins'],
    [no|/*|'$'*], [],
    [AC_MSG_ERROR([--with-wiresharkplugindir=$with_wiresharkplugindir: takes an absolute directory, yes or no])])
  AC_SUBST([wiresharkplugindir], [$with_wiresharkplugindir])
  AM_CONDITIONAL([INSTALL_DISSECTOR], [test "x$with_wiresharkplugindir" != xno])
])
