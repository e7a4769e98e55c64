# SPDX-License-Identifier: BSD-3-Clause
# convert_sanitizers.m4 - build everything under sanitizers

# CONVERT_SANITIZERS
# ------------------
# --enable-sanitizers=LIST, a comma-separated list among address, undefined,
# leak and thread (as in the compiler's -fsanitize=). Sets SANITIZER_CFLAGS and
# SANITIZER_LDFLAGS, and SANITIZER_PRELOAD: the run-time libraries that must stand
# before libconvert.so in LD_PRELOAD when the host program is not instrumented. That of thread
# is not among them: its interceptors must be behind our hooks, or they report races of
# their own, so that it serves for instrumented programs only.
AC_DEFUN([CONVERT_SANITIZERS], [
  AC_ARG_ENABLE([sanitizers],
    [AS_HELP_STRING([--enable-sanitizers=LIST],
      [build with sanitizers: a comma-separated list of address, undefined, leak, thread])],
    [], [enable_sanitizers=no])
  SANITIZER_CFLAGS=
  SANITIZER_LDFLAGS=
  SANITIZER_PRELOAD=
  AS_IF([test "x$enable_sanitizers" = xyes],
    [AC_MSG_ERROR([--enable-sanitizers: name them, such as --enable-sanitizers=address,undefined])])
  AS_IF([test "x$enable_sanitizers" != xno], [
    for convert_san in `AS_ECHO(["$enable_sanitizers"]) | tr ',' ' '`; do
      AS_CASE([$convert_san],
        [address],   [convert_rt=libasan.so],
        [undefined], [convert_rt=libubsan.so],
        [leak],      [convert_rt=liblsan.so],
        [thread],    [convert_rt=],
        [AC_MSG_ERROR([--enable-sanitizers: "$convert_san" is not one of address, undefined, leak, thread])])
      AS_IF([test -n "$convert_rt"], [
        convert_rt=`$CC -print-file-name=$convert_rt`
        SANITIZER_PRELOAD="$SANITIZER_PRELOAD${SANITIZER_PRELOAD:+ }$convert_rt"])
    done
    AC_DEFINE([WITH_SANITIZERS], [1], [sanitizers look after the programs])
    SANITIZER_CFLAGS="-fsanitize=$enable_sanitizers -fno-sanitize-recover=all -fno-omit-frame-pointer"
    SANITIZER_LDFLAGS="-fsanitize=$enable_sanitizers"
    convert_saved_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS $SANITIZER_CFLAGS"
    AC_MSG_CHECKING([whether $CC builds programs with -fsanitize=$enable_sanitizers])
    AC_LINK_IFELSE([AC_LANG_PROGRAM()], [AC_MSG_RESULT([yes])],
      [AC_MSG_RESULT([no])
       AC_MSG_ERROR([--enable-sanitizers=$enable_sanitizers: $CC cannot link such a program; install the run-time libraries or choose others])])
    CFLAGS=$convert_saved_CFLAGS
  ])
  AM_CONDITIONAL([SANITIZED], [test -n "$SANITIZER_PRELOAD"])
  AM_CONDITIONAL([THREAD_SANITIZED], [test "x$enable_sanitizers" = xthread])
  AC_SUBST([SANITIZER_CFLAGS])
  AC_SUBST([SANITIZER_LDFLAGS])
  AC_SUBST([SANITIZER_PRELOAD])
])
