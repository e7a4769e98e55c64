# SPDX-License-Identifier: BSD-3-Clause
# libconvert.so, the preload library
# In a directory of its own, where no linker and no loader looks for libraries by their names: it is for LD_PRELOAD only.
pkglib_LTLIBRARIES = libconvert.la
libconvert_la_SOURCES = \
	src/shim/hooks/alias.c src/shim/hooks/dlopen.c src/shim/hooks/epoll.c src/shim/hooks/exec.c src/shim/hooks/hook.h src/shim/hooks/io.c \
	src/shim/hooks/poll.c src/shim/hooks/select.c src/shim/hooks/socket.c src/shim/hooks/sockopt.c src/shim/hooks/syscall.c \
	src/shim/connect/conversion.c src/shim/connect/conversion.h src/shim/connect/conversion_wait.c src/shim/connect/follow.c \
	src/shim/connect/gate.c src/shim/connect/gate.h src/shim/connect/operations.c src/shim/connect/connect.h \
	src/shim/connect/replace.c src/shim/connect/ring_use.c src/shim/connect/settle.c \
	src/shim/process/children.c src/shim/process/exec_handover.c \
	src/shim/process/init.c src/shim/process/leave.c src/shim/process/process.h src/shim/process/socket_record.c src/shim/process/socket_record.h \
	src/shim/wait/deadline_timer.c src/shim/wait/registrations.c src/shim/wait/watch.c src/shim/wait/watch.h \
	src/shim/socket/app_options.c src/shim/socket/app_options.h src/shim/socket/conn.c src/shim/socket/conn.h src/shim/socket/conn_phase.c \
	src/shim/socket/phase.h \
	src/shim/system/native_times.h src/shim/system/next.c src/shim/system/next.h src/shim/system/rights.c src/shim/system/rights.h src/shim/system/rings.c src/shim/system/rings.h \
	src/shim/system/usermem.c src/shim/system/usermem.h src/shim/system/waiting.h
# It lives in other people's processes: hidden but for the hooks, bound at once, static TLS, never unloaded;
# and what calls a hook here calls our own, not another library's.
# See configure.ac for NATIVE_TIMES.
libconvert_la_CPPFLAGS = $(AM_CPPFLAGS) -DNATIVE_TIMES
libconvert_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden -ftls-model=initial-exec
libconvert_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -no-undefined \
	-export-symbols $(srcdir)/src/shim/libconvert.sym -Wl,-z,now -Wl,-z,nodelete \
	-Wl,-Bsymbolic-functions $(UNDEFINED_VERSION)
libconvert_la_LIBADD = libengine.la libhost.la libclient.la libcodec.la libprogram.la libcommon.la -ldl
libconvert_la_DEPENDENCIES = libengine.la libhost.la libclient.la libcodec.la libprogram.la libcommon.la $(srcdir)/src/shim/libconvert.sym
EXTRA_DIST += src/shim/libconvert.sym
dist_man_MANS += man/libconvert.so.7
EXTRA_DIST += src/shim/system/README.md \
	src/shim/socket/README.md \
	src/shim/wait/README.md \
	src/shim/connect/README.md \
	src/shim/process/README.md \
	src/shim/hooks/README.md
