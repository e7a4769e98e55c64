# the lab: hosts in network namespaces, joined by links that linkem emulates
noinst_PROGRAMS += linkem
linkem_SOURCES = tests/lab/linkem/main.c tests/lab/linkem/settings.c tests/lab/linkem/lane.c \
	tests/lab/linkem/surgery.c tests/lab/linkem/control.c tests/lab/linkem/linkem.h

EXTRA_DIST += tests/lab/lab tests/lab/convertlab/__init__.py tests/lab/convertlab/build.py \
	tests/lab/convertlab/capture.py tests/lab/convertlab/cli.py tests/lab/convertlab/harness.py \
	tests/lab/convertlab/hosts.py tests/lab/convertlab/links.py tests/lab/convertlab/pcap.py \
	tests/lab/convertlab/peers.py tests/lab/convertlab/sandbox.py tests/lab/convertlab/servers.py \
	tests/lab/convertlab/sniffer.py tests/lab/convertlab/topology.py tests/lab/convertlab/waiting.py \
	tests/lab/scripted_converter.py tests/lab/apps/bulk.py tests/lab/apps/connect_probe.py \
	tests/lab/apps/duplex.py tests/lab/apps/interrupt_probe.py tests/lab/apps/many.py tests/lab/apps/shared_probe.py

check_PROGRAMS += tests/lab/apps/threads
tests_lab_apps_threads_SOURCES = tests/lab/apps/threads.c
tests_lab_apps_threads_LDFLAGS = $(AM_LDFLAGS) -pthread

# Labs wait for each other (harness.py takes a lock on the build directory), since they measure.
LAB_TESTS = tests/lab/test_link.py tests/lab/test_platform.py tests/lab/test_shim_semantics.py \
	tests/lab/test_transfers.py tests/lab/test_aggregation.py tests/lab/test_convertd_messages.py \
	tests/lab/test_convertd_relay.py tests/lab/test_convertd_process.py
dist_check_SCRIPTS = $(LAB_TESTS)
TESTS += $(LAB_TESTS)
TEST_EXTENSIONS = .py
if HAVE_PYTHON
PY_LOG_COMPILER = $(PYTHON)
else
PY_LOG_COMPILER = $(SHELL) -c 'echo "SKIP: configure found no Python 3.9 or newer; on Debian: apt-get install python3"; \
	test -z "$$CONVERT_NO_SKIP" && exit 77; exit 1'
endif

# automake allows one AM_TESTS_ENVIRONMENT in the whole package: this one
AM_TESTS_ENVIRONMENT = CONVERT_BUILDDIR='$(abs_top_builddir)'; export CONVERT_BUILDDIR; \
	CONVERT_SRCDIR='$(abs_top_srcdir)'; export CONVERT_SRCDIR; \
	SANITIZER_PRELOAD='$(SANITIZER_PRELOAD)'; export SANITIZER_PRELOAD; \
	PYTHONDONTWRITEBYTECODE=1; export PYTHONDONTWRITEBYTECODE;

# programs that aren't instrumented need help under sanitizers; -rpath makes it a shared library
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
