# SPDX-License-Identifier: BSD-3-Clause
# convert_loader_lib.m4 - what the loader puts in the place of $LIB

# CONVERT_LOADER_LIB
# ------------------
# Defines LIBCONVERT_LOADER_LIB in config.h: what the C library's loader makes of "$LIB" in LD_PRELOAD (ld.so(8)), such as
# "lib/x86_64-linux-gnu" on Debian or "lib64" on Fedora; empty where it makes nothing of it, as musl's. With a libdir that ends in
# it, convertize names the library by a path with $LIB, so that programs of each machine get their own.
#
# The loader is asked, by a program whose run-time search path has $LIB in it, in a way that no other entry is written. (It leaves out
# directories that aren't there; /usr/$LIB is on each system with glibc.) For another host it can't be asked: then it is assumed to be
# what Debian's compilers name their directory after, else nothing; convert_cv_loader_lib=… says it otherwise.
AC_DEFUN([CONVERT_LOADER_LIB], [
  AC_CACHE_CHECK([what the loader puts in place of \$LIB], [convert_cv_loader_lib], [
    convert_saved_LDFLAGS=$LDFLAGS
    LDFLAGS="$LDFLAGS -Wl,-rpath,/usr/./\$LIB"
    AC_RUN_IFELSE([AC_LANG_PROGRAM([[
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static const char start[] = "/usr/./";
      ]], [[
void *self = dlopen(NULL, RTLD_NOW);
FILE *out = fopen("conftest.out", "w");
Dl_serinfo size, *list;

if (!self || !out || dlinfo(self, RTLD_DI_SERINFOSIZE, &size) || !(list = malloc(size.dls_size)))
	return 1;
memcpy(list, &size, sizeof(size));
if (dlinfo(self, RTLD_DI_SERINFO, list))
	return 1;
for (unsigned int i = 0; i < list->dls_cnt; i++)
	if (!strncmp(list->dls_serpath@<:@i@:>@.dls_name, start, sizeof(start) - 1))
		return fprintf(out, "%s\n", list->dls_serpath@<:@i@:>@.dls_name + sizeof(start) - 1) < 0 || fclose(out);
return 1;
      ]])],
      [convert_cv_loader_lib=`cat conftest.out`],
      [convert_cv_loader_lib=],
      [convert_cv_loader_lib=`$CC $CFLAGS -print-multiarch 2>/dev/null | $SED -n 's|^.*-linux-gnu.*$|lib/&|p'`])
    LDFLAGS=$convert_saved_LDFLAGS
    rm -f conftest.out
  ])
  AC_DEFINE_UNQUOTED([LIBCONVERT_LOADER_LIB], ["$convert_cv_loader_lib"], [what the loader puts in place of $LIB; empty: nothing])
])
