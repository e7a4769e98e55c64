# SPDX-License-Identifier: BSD-3-Clause
# the lab: hosts in network namespaces, joined by links that linkem emulates
noinst_PROGRAMS += linkem
linkem_SOURCES = tests/lab/linkem/main.c tests/lab/linkem/settings.c tests/lab/linkem/lane.c \
	tests/lab/linkem/surgery.c tests/lab/linkem/control.c tests/lab/linkem/delays.c tests/lab/linkem/linkem.h

EXTRA_DIST += tests/lab/lab tests/lab/convertlab/__init__.py tests/lab/convertlab/build.py \
	tests/lab/convertlab/capture.py tests/lab/convertlab/cli.py tests/lab/convertlab/dissector.py tests/lab/convertlab/faults.py \
	tests/lab/convertlab/forging.py tests/lab/convertlab/gateways.py tests/lab/convertlab/golden.py tests/lab/convertlab/harness.py \
	tests/lab/convertlab/hosts.py \
	tests/lab/convertlab/kernel.py \
	tests/lab/convertlab/links.py tests/lab/convertlab/manager.py tests/lab/convertlab/metrics.py \
	tests/lab/convertlab/names.py tests/lab/convertlab/nodes.py tests/lab/convertlab/paths.py \
	tests/lab/convertlab/pcap.py \
	tests/lab/convertlab/peers.py tests/lab/convertlab/sandbox.py tests/lab/convertlab/servers.py \
	tests/lab/convertlab/sniffer.py tests/lab/convertlab/supervised.py tests/lab/convertlab/systemd.py tests/lab/convertlab/topology.py \
	tests/lab/convertlab/turns.py tests/lab/convertlab/waiting.py tests/lab/convertlab/withheld.py \
	tests/lab/scripted_converter.py tests/lab/apps/bulk.py tests/lab/apps/connect_probe.py tests/lab/apps/peeks.py \
	tests/lab/apps/confined_probe.py tests/lab/apps/signal_probe.py \
	tests/lab/apps/duplex.py tests/lab/apps/early_probe.py tests/lab/apps/interrupt_probe.py tests/lab/apps/many.py \
	tests/lab/apps/process_probe.py tests/lab/apps/shared_probe.py tests/lab/apps/supervised.c tests/lab/apps/changing.c tests/lab/apps/deny.c \
	tests/lab/apps/lro.c tests/lab/apps/no_fastopen.c

# What the test of the documents needs.
EXTRA_DIST += tests/lab/convertlab/documents.py tests/lab/convertlab/scenes.py tests/lab/standins/journalctl \
	tests/lab/standins/scp tests/lab/standins/ssh tests/lab/standins/systemctl tests/lab/standins/networks/nmcli

# What the tests of applications need. Their programs are compiled when the tests run, if their compilers are installed.
EXTRA_DIST += tests/lab/convertlab/applications.py tests/lab/convertlab/webserver.py tests/lab/apps/git_server.py tests/lab/apps/portal.py \
	tests/lab/apps/runtime_client.py tests/lab/apps/runtime_client.js tests/lab/apps/runtime_client.rb \
	tests/lab/apps/runtime_client.pl tests/lab/apps/RuntimeClient.java \
	tests/lab/apps/tokio/Cargo.toml tests/lab/apps/tokio/src/main.rs tests/lab/apps/loops/task.h \
	tests/lab/apps/loops/loop_glib.c tests/lab/apps/loops/loop_libev.c tests/lab/apps/loops/loop_libevent.c \
	tests/lab/apps/loops/loop_libuv.c tests/lab/convertlab/programs.py tests/lab/apps/static/elsewhere.c tests/lab/apps/static/tally.c \
	tests/lab/apps/static/moments.c tests/lab/apps/static/moments.h tests/lab/apps/static/again.c tests/lab/apps/static/dials.c \
	tests/lab/apps/static/tally.h tests/lab/apps/static/tally_uring.c tests/lab/apps/go/task.go tests/lab/apps/go/http.go \
	tests/lab/apps/go/net.go tests/lab/apps/go/credential.go
clean-local:
	rm -rf tests/lab/apps/build

# The reproducers are compiled and run, so that the reports stay true.
check_PROGRAMS += doc/reproducers/mptcp-fallback-overlap doc/reproducers/mptcp-outages
doc_reproducers_mptcp_fallback_overlap_SOURCES = doc/reproducers/mptcp-fallback-overlap.c
doc_reproducers_mptcp_outages_SOURCES = doc/reproducers/mptcp-outages.c

# They stand for applications and for their mistakes: they call the C library's functions by their own names, not by those that
# _FORTIFY_SOURCE puts in their place.
APP_CPPFLAGS = $(AM_CPPFLAGS) -U_FORTIFY_SOURCE

check_PROGRAMS += tests/lab/apps/threads
tests_lab_apps_threads_CPPFLAGS = $(APP_CPPFLAGS)
tests_lab_apps_threads_SOURCES = tests/lab/apps/threads.c
tests_lab_apps_threads_LDFLAGS = $(AM_LDFLAGS) -pthread
check_PROGRAMS += tests/lab/apps/rings
tests_lab_apps_rings_CPPFLAGS = $(APP_CPPFLAGS)
tests_lab_apps_rings_SOURCES = tests/lab/apps/rings.c
check_PROGRAMS += tests/lab/apps/forks
tests_lab_apps_forks_CPPFLAGS = $(APP_CPPFLAGS)
tests_lab_apps_forks_SOURCES = tests/lab/apps/forks.c

check_PROGRAMS += tests/lab/apps/surface_local
tests_lab_apps_surface_local_CPPFLAGS = $(APP_CPPFLAGS)
tests_lab_apps_surface_local_SOURCES = tests/lab/apps/surface_local.c tests/lab/apps/say.h
check_PROGRAMS += tests/lab/apps/surface_remote
tests_lab_apps_surface_remote_CPPFLAGS = $(APP_CPPFLAGS)
tests_lab_apps_surface_remote_SOURCES = tests/lab/apps/surface_remote.c tests/lab/apps/await.h tests/lab/apps/answered.h tests/lab/apps/say.h
tests_lab_apps_surface_remote_LDFLAGS = $(AM_LDFLAGS) -pthread
check_PROGRAMS += tests/lab/apps/surface_interrupts
tests_lab_apps_surface_interrupts_CPPFLAGS = $(APP_CPPFLAGS)
tests_lab_apps_surface_interrupts_SOURCES = tests/lab/apps/surface_interrupts.c tests/lab/apps/await.h \
	tests/lab/apps/say.h
tests_lab_apps_surface_interrupts_LDFLAGS = $(AM_LDFLAGS) -pthread
check_PROGRAMS += tests/lab/apps/surface_syscall
tests_lab_apps_surface_syscall_SOURCES = tests/lab/apps/surface_remote.c tests/lab/apps/await.h tests/lab/apps/answered.h tests/lab/apps/say.h \
	tests/lab/apps/through_syscall.h
tests_lab_apps_surface_syscall_CPPFLAGS = $(APP_CPPFLAGS) -DTHROUGH_SYSCALL
tests_lab_apps_surface_syscall_LDFLAGS = $(AM_LDFLAGS) -pthread

tests_lab_apps_bad_calls_SOURCES = tests/lab/apps/await.h tests/lab/apps/answered.h tests/lab/apps/bad_calls.c tests/lab/apps/bad_calls.h tests/lab/apps/bad_calls_names.c \
	tests/lab/apps/bad_calls_transfer.c tests/lab/apps/bad_calls_waits.c
check_PROGRAMS += tests/lab/apps/bad_calls
tests_lab_apps_bad_calls_CPPFLAGS = $(APP_CPPFLAGS)

check_PROGRAMS += tests/lab/apps/hook_probe
tests_lab_apps_hook_probe_CPPFLAGS = $(APP_CPPFLAGS)
tests_lab_apps_hook_probe_SOURCES = tests/lab/apps/hook_probe.c tests/lab/apps/say.h
tests_lab_apps_hook_probe_LDFLAGS = $(AM_LDFLAGS) -pthread

check_PROGRAMS += tests/lab/apps/resolve_probe
tests_lab_apps_resolve_probe_SOURCES = tests/lab/apps/resolve_probe.c
tests_lab_apps_resolve_probe_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_lab_apps_resolve_probe_LDADD = libclient.la libcodec.la libcommon.la

# a module for nsswitch.conf; -rpath makes it a shared library
if HAVE_NSS
# for test_convertd_privileges.py
check_LTLIBRARIES += libattack.la
libattack_la_SOURCES = tests/lab/attack.c
libattack_la_LDFLAGS = $(AM_LDFLAGS) -module -shared -rpath /nowhere -avoid-version -pthread

check_LTLIBRARIES += libnss_nested.la
libnss_nested_la_SOURCES = tests/lab/nss_nested.c
libnss_nested_la_LDFLAGS = $(AM_LDFLAGS) -module -shared -rpath /nowhere -version-info 2:0:0
libnss_nested_la_LIBADD = libclient.la libcodec.la libcommon.la
endif

# It lets a program see as many CPUs as a test wants; -rpath makes it a shared library.
check_LTLIBRARIES += libmanycpus.la
libmanycpus_la_SOURCES = tests/lab/many_cpus.c
libmanycpus_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere

# It does what Linux 6.1 doesn't do.
check_LTLIBRARIES += libolderlinux.la
libolderlinux_la_SOURCES = tests/lab/older_linux.c
libolderlinux_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere

# Each file has quick tests, which "make check" runs, tests marked with @long, which "make check-long" runs, or both (convertlab/harness.py).
# They run side by side, since they wait more than they compute (convertlab/turns.py): the longest first, so that none is left over.
FIRST_TESTS = tests/lab/test_shim_surface.py tests/lab/test_convertize_doctor.py tests/lab/test_transfers.py \
	tests/lab/test_fallback.py tests/lab/test_far_clients.py tests/lab/test_silence_shim.py tests/lab/test_rings.py \
	tests/lab/test_supervise_moments.py \
	tests/lab/test_shim_semantics.py tests/lab/test_confirmation.py tests/lab/test_convertd_hold.py \
	tests/lab/test_convertd_hold_switch.py tests/lab/test_silence.py tests/lab/test_silence_blind.py tests/lab/test_shim_policy.py \
	tests/lab/test_shim_processes.py tests/lab/test_convertize_paths.py tests/lab/test_paths.py tests/lab/test_begin.py tests/lab/test_begin_wishes.py \
	tests/lab/test_peeks.py tests/lab/test_paths_service.py tests/lab/test_supervise_begin.py tests/lab/test_supervise_slow.py
LAB_TESTS = \
	tests/lab/test_shim_moments.py \
	tests/lab/test_early_data.py \
	tests/lab/test_learned.py tests/lab/test_begin_refused.py \
	tests/lab/test_metered.py \
	tests/lab/test_convertd_messages.py \
	tests/lab/test_convertd_own.py \
	tests/lab/test_convertd_routes.py \
	tests/lab/test_convertd_privileges.py \
	tests/lab/test_convertd_relay.py \
	tests/lab/test_convertd_ends.py \
	tests/lab/test_convertd_process.py \
	tests/lab/test_convertd_activation.py \
	tests/lab/test_deaf_readers.py \
	tests/lab/test_convertd_config.py \
	tests/lab/test_convertd_drain.py \
	tests/lab/test_convertd_restart.py \
	tests/lab/test_convertd_host.py \
	tests/lab/test_convertd_access.py \
	tests/lab/test_convertd_killed.py \
	tests/lab/test_convertd_limits.py \
	tests/lab/test_convertd_cookies.py \
	tests/lab/test_convertd_demand.py \
	tests/lab/test_convertd_families.py \
	tests/lab/test_convertd_sources.py \
	tests/lab/test_several_converters.py \
	tests/lab/test_upload_round_trips.py tests/lab/test_slow_first_network.py \
	tests/lab/test_convertd_fallback.py \
	tests/lab/test_convertd_observe.py \
	tests/lab/test_convertd_warden.py \
	tests/lab/test_convertd_workers.py \
	tests/lab/test_convertd_counts.py \
	tests/lab/test_resolve.py \
	tests/lab/test_shim_confined.py tests/lab/test_shim_names.py \
	tests/lab/test_convertize.py \
	tests/lab/test_supervise.py tests/lab/test_supervise_forbidden.py tests/lab/test_supervise_processes.py \
	tests/lab/test_supervise_again.py tests/lab/test_supervise_late.py \
	tests/lab/test_gateway.py tests/lab/test_gateway_reload.py tests/lab/test_gateway_rules.py tests/lab/test_gateway_beside.py tests/lab/test_gateway_lans.py \
	tests/lab/test_examples.py \
	tests/lab/test_convertize_check.py tests/lab/test_without_fastopen.py \
	tests/lab/test_paths_others.py \
	tests/lab/test_preloads.py \
	tests/lab/test_applications_http.py \
	tests/lab/test_applications_loops.py \
	tests/lab/test_supervise_yama.py
# All tests of these are long.
LONG_TESTS = tests/lab/test_gateway_real.py tests/lab/test_supervise_streams.py tests/lab/test_begin_behind.py tests/lab/test_begin_busy.py tests/lab/test_convertd_memory.py \
	tests/lab/test_convertd_reflection.py tests/lab/test_strangers.py tests/lab/test_valgrind.py
# These test the lab itself, documents, what isn't written in C, and large applications: sanitizers would find nothing more, and slow them down.
PLAIN_TESTS = tests/lab/test_wireshark.py tests/lab/test_losses.py tests/lab/test_bench.py tests/lab/test_documents.py \
	tests/lab/test_scapy.py tests/lab/test_harness.py tests/lab/test_link.py tests/lab/test_completions.py \
	tests/lab/test_convertize_status.py tests/lab/test_quota.py \
	tests/lab/test_convertd_units.py tests/lab/test_applications_services.py tests/lab/test_applications_runtimes.py \
	tests/lab/test_applications_static.py tests/lab/test_applications_go.py tests/lab/test_convertize_sessions.py \
	tests/lab/test_convertize_units.py tests/lab/test_convertize_situations.py tests/lab/test_convertize_situations_here.py
# These come last, one after the other, when nothing else of the tests runs any more. The first two make thousands of connections a
# second, which takes all of the machine; everything in the others is a measurement, and says nothing under sanitizers.
MEASURING_TESTS = tests/lab/test_convertd_fairness.py tests/lab/test_convertd_kernel_memory.py \
	tests/lab/test_convertd_kernel_memory_times.py tests/lab/test_begin_times.py \
	tests/lab/test_connection_times.py tests/lab/test_link_times.py tests/lab/test_times.py tests/lab/test_aggregation.py \
	tests/lab/test_supervise_times.py tests/lab/test_supervise_lost.py
# ThreadSanitizer works only with programs that are built with it.
THREAD_TESTS = tests/lab/test_thread_sanitizer.py
# What Linux does: "make check-platform" runs them, for a kernel that is new here.
PLATFORM_TESTS = tests/lab/test_platform.py tests/lab/test_platform_fallback.py tests/lab/test_platform_outages.py \
	tests/lab/test_platform_handshake.py tests/lab/test_platform_paths.py tests/lab/test_platform_processes.py
PLATFORM_MEASURING_TESTS = tests/lab/test_platform_times.py
dist_check_SCRIPTS += $(FIRST_TESTS) $(LAB_TESTS) $(LONG_TESTS) $(PLAIN_TESTS) $(MEASURING_TESTS) $(THREAD_TESTS) $(PLATFORM_TESTS) \
	$(PLATFORM_MEASURING_TESTS)
if THREAD_SANITIZED
TESTS += $(THREAD_TESTS)
else
# Those that "make check" runs.
if SANITIZED
LAB_CHECKS = $(FIRST_TESTS) $(LAB_TESTS)
else
LAB_CHECKS = $(PLAIN_TESTS) $(FIRST_TESTS) $(LAB_TESTS)
endif
TESTS += $(LAB_CHECKS)
endif
measuring_logs = $(MEASURING_TESTS:.py=.log) $(PLATFORM_MEASURING_TESTS:.py=.log)
$(measuring_logs): | $(filter-out $(measuring_logs),$(TEST_LOGS))

# Which tests of a file run: of files that are named on the command line, all.
LAB_PART = $(if $(filter command,$(origin TESTS)),all,quick)
long_checks = $(LONG_BUILD_TESTS) $(LONG_TESTS) $(shell cd $(top_srcdir) && grep -l '^@long$$' $(FIRST_TESTS) $(LAB_TESTS) $(PLAIN_TESTS)) \
	$(MEASURING_TESTS)
check-long: all
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(long_checks)' LAB_PART=long
# The second half of it: with "make check-long MEASURING_TESTS=" before, other things can be done beside the first.
check-measuring: all
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(MEASURING_TESTS)' LAB_PART=long
check-platform: all
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(PLATFORM_TESTS) $(PLATFORM_MEASURING_TESTS)'
.PHONY: check-long check-measuring check-platform
# Says which tests took longest, once all is over.
check-local: check-TESTS
	@awk '$$2 ~ /^test_/ && $$3 ~ /^\([0-9.]+s,$$/ { \
		file = FILENAME; sub(".*/", "", file); sub("\\.log$$", ".py", file); \
		print substr($$3, 2, length($$3) - 3) " s, " $$4 " of CPU: " file ": " $$2 }' $(TEST_LOGS) /dev/null | \
		sort -rn | head -n 10 | sed '1i\
	The slowest tests of the lab:'
TEST_EXTENSIONS = .py
if HAVE_PYTHON
PY_LOG_COMPILER = $(PYTHON)
else
PY_LOG_COMPILER = $(SHELL) -c 'echo "SKIP: configure found no Python 3.9 or newer; on Debian: apt-get install python3"; \
	test -z "$$CONVERT_NO_SKIP" && exit 77; exit 1'
endif

# automake allows one AM_TESTS_ENVIRONMENT in the whole package: this one.
AM_TESTS_ENVIRONMENT = CONVERT_BUILDDIR='$(abs_top_builddir)'; export CONVERT_BUILDDIR; \
	CONVERT_SRCDIR='$(abs_top_srcdir)'; export CONVERT_SRCDIR; \
	CONVERT_LAB_PART='$(LAB_PART)'; export CONVERT_LAB_PART; \
	SANITIZER_PRELOAD='$(SANITIZER_PRELOAD)'; export SANITIZER_PRELOAD; \
	PYTHONDONTWRITEBYTECODE=1; export PYTHONDONTWRITEBYTECODE; \
	CONVERT_CONSOLE=9; export CONVERT_CONSOLE;
# The terminal, to which harness.py reports each skip.
AM_TESTS_FD_REDIRECT = 9>&2

# Programs that are built without sanitizers need it under libraries that are built with them; -rpath makes it a shared library.
if SANITIZED
noinst_LTLIBRARIES += libasanfirst.la
libasanfirst_la_SOURCES = tests/lab/asan_first.c
libasanfirst_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere -Wl,-z,initfirst
endif

# make demo
noinst_PROGRAMS += tlvdump
tlvdump_SOURCES = tests/lab/tlvdump.c
tlvdump_LDADD = libcodec.la libcommon.la
EXTRA_DIST += tests/lab/demo.py tests/lab/convertlab/leftovers.py tests/lab/convertlab/report.py \
	build-tools/install-needs

demo: all-am
	@$(top_srcdir)/build-tools/install-needs demo
	@$(AM_TESTS_ENVIRONMENT) python=`test "$(PYTHON)" = : && echo python3 || echo "$(PYTHON)"`; \
	$$python $(top_srcdir)/tests/lab/demo.py
.PHONY: demo
