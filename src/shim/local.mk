# SPDX-License-Identifier: BSD-3-Clause
# libconvert.so, the preload library
lib_LTLIBRARIES += libconvert.la
libconvert_la_SOURCES = \
	src/shim/attempt.c src/shim/attempt.h src/shim/beneath.c src/shim/beneath.h src/shim/children.c src/shim/children.h src/shim/clock.h \
	src/shim/conn.c src/shim/conn.h \
	src/shim/conversion.c src/shim/conversion.h src/shim/conversion_start.c src/shim/conversion_wait.c \
	src/shim/converters.c src/shim/converters.h \
	src/shim/deadline.h src/shim/deadlines.c src/shim/deadlines.h src/shim/early.c src/shim/early.h \
	src/shim/gate.c src/shim/gate.h src/shim/hook.h \
	src/shim/handover.c src/shim/handover.h src/shim/handover_record.c src/shim/handover_record.h src/shim/leave.c src/shim/leave.h \
	src/shim/hooks_epoll.c src/shim/hooks_exec.c src/shim/hooks_io.c src/shim/hooks_poll.c \
	src/shim/hooks_socket.c \
	src/shim/init.c \
	src/shim/log.c src/shim/log.h \
	src/shim/next.c src/shim/next.h src/shim/output.c src/shim/output.h \
	src/shim/others.c src/shim/others.h src/shim/paths.c src/shim/paths.h src/shim/patience.h src/shim/rights.c src/shim/rights.h \
	src/shim/servers.c src/shim/servers.h \
	src/shim/settle.c src/shim/settle.h src/shim/shared.c src/shim/shared.h \
	src/shim/signals.c src/shim/signals.h \
	src/shim/mptcpinfo.h src/shim/tcpinfo.h src/shim/unseen.c src/shim/unseen.h \
	src/shim/watch.c src/shim/watch.h
libconvert_la_SOURCES += \
	src/shim/hooks_alias.c src/shim/hooks_dlopen.c src/shim/hooks_names.c src/shim/hooks_options.c src/shim/hooks_select.c src/shim/hooks_stdio.c src/shim/hooks_syscall.c \
	src/shim/dissolve.c src/shim/dissolve.h src/shim/input.c src/shim/input.h \
	src/shim/liveness.c src/shim/liveness.h src/shim/lowat.c src/shim/lowat.h \
	src/shim/options.c src/shim/options.h \
	src/shim/poll_pending.h src/shim/replace.c src/shim/replace.h src/shim/usermem.c src/shim/usermem.h \
	src/shim/quiet.c src/shim/quiet.h src/shim/rebind.c src/shim/rebind.h
# It lives in other people's processes: hidden but for the hooks, bound at once, static TLS, never unloaded;
# and syscall() calls our hooks, not another library's.
libconvert_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden -ftls-model=initial-exec
libconvert_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -no-undefined \
	-export-symbols $(srcdir)/src/shim/libconvert.sym -Wl,-z,now -Wl,-z,nodelete \
	-Wl,-Bsymbolic-functions $(UNDEFINED_VERSION)
libconvert_la_LIBADD = libresolve.la libclient.la libcodec.la libprogram.la libcommon.la -ldl
libconvert_la_DEPENDENCIES = libresolve.la libclient.la libcodec.la libprogram.la libcommon.la $(srcdir)/src/shim/libconvert.sym
EXTRA_DIST += src/shim/libconvert.sym
dist_man_MANS += man/libconvert.so.7
