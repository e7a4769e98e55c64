# SPDX-License-Identifier: BSD-3-Clause
# convert_resolver.m4 - how this C library is asked for SRV records

# CONVERT_RESOLVER
# ----------------
# Sets RESOLV_LIBS to what res_query() and dn_expand() need beside the C library: nothing in glibc since 2.34 and in musl,
# libresolv in older glibc. Defines HAVE_RES_NINIT where a thread has a resolver state of its own that can be made and
# released (glibc, not musl).
AC_DEFUN([CONVERT_RESOLVER], [
  m4_pushdef([convert_headers], [[#include <sys/types.h>
    #include <netinet/in.h>
    #include <arpa/nameser.h>
    #include <resolv.h>]])
  convert_saved_LIBS=$LIBS
  RESOLV_LIBS=no
  AC_MSG_CHECKING([for the library with res_query])
  for convert_lib in "" -lresolv; do
    LIBS="$convert_lib $convert_saved_LIBS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([convert_headers],
      [[unsigned char answer[512]; char name[256];
        return res_query("x", ns_c_in, ns_t_srv, answer, sizeof(answer)) +
          dn_expand(answer, answer, answer, name, sizeof(name));]])],
      [RESOLV_LIBS=$convert_lib; break])
  done
  AS_IF([test "x$RESOLV_LIBS" = xno],
    [AC_MSG_RESULT([none])
     AC_MSG_ERROR([this C library has no res_query: converters could not be found by SRV records])])
  AC_MSG_RESULT([${RESOLV_LIBS:-the C library}])
  AC_MSG_CHECKING([whether a thread's resolver state can be made by res_ninit])
  convert_res_ninit=no
  AC_LINK_IFELSE([AC_LANG_PROGRAM([convert_headers],
    [[if (res_ninit(&_res) == 0) res_nclose(&_res);]])],
    [convert_res_ninit=yes
     AC_DEFINE([HAVE_RES_NINIT], [1], [a thread has a resolver state, _res, that res_ninit() makes])])
  AC_MSG_RESULT([$convert_res_ninit])
  LIBS=$convert_saved_LIBS
  AC_SUBST([RESOLV_LIBS])
  m4_popdef([convert_headers])
])
