# SPDX-License-Identifier: BSD-3-Clause
# convert_link_flag.m4 - flags that not every linker has

# CONVERT_LINK_FLAG(FLAG, VARIABLE)
# ---------------------------------
# Substitutes FLAG for VARIABLE if the linker takes it, else nothing.
AC_DEFUN([CONVERT_LINK_FLAG], [
  AC_MSG_CHECKING([whether the linker takes $1])
  convert_saved_ldflags=$LDFLAGS
  LDFLAGS="$LDFLAGS $1"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
    [AC_MSG_RESULT([yes])
     $2='$1'],
    [AC_MSG_RESULT([no])
     $2=])
  LDFLAGS=$convert_saved_ldflags
  AC_SUBST([$2])
])
