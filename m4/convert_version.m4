# SPDX-License-Identifier: BSD-3-Clause
# convert_version.m4 - which version of a library was found

# CONVERT_VERSION(VARIABLE, WITH, MODULES)
# ----------------------------------------
# Sets VARIABLE, for the summary, to the names of pkg-config's MODULES with their versions, to "no" where WITH is "no". Who gives a
# library's flags by variables, as configure --help says, may have no file for pkg-config: its version isn't known then.
AC_DEFUN([CONVERT_VERSION], [
  $1=no
  AS_IF([test "x$2" != xno], [
    $1=
    for convert_module in $3; do
      convert_modversion=`$PKG_CONFIG --modversion $convert_module 2>/dev/null`
      $1="$$1${$1:+, }$convert_module ${convert_modversion:-of unknown version}"
    done])
])
