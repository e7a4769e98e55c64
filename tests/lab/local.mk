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
	tests/lab/apps/duplex.py tests/lab/apps/many.py

# Labs wait for each other (harness.py takes a lock on the build directory), since they measure.
LAB_TESTS = tests/lab/test_link.py tests/lab/test_platform.py tests/lab/test_shim_semantics.py \
	tests/lab/test_transfers.py tests/lab/test_aggregation.py tests/lab/test_convertd_messages.py \
	tests/lab/test_convertd_relay.py tests/lab/test_convertd_process.py
dist_check_SCRIPTS = $(LAB_TESTS)
TEST_EXTENSIONS = .py
PY_LOG_COMPILER = $(PYTHON)
if HAVE_PYTHON
TESTS += $(LAB_TESTS)
endif

# automake allows one AM_TESTS_ENVIRONMENT in the whole package: this one
AM_TESTS_ENVIRONMENT = CONVERT_BUILDDIR='$(abs_top_builddir)'; export CONVERT_BUILDDIR; \
	CONVERT_SRCDIR='$(abs_top_srcdir)'; export CONVERT_SRCDIR; \
	SANITIZER_PRELOAD='$(SANITIZER_PRELOAD)'; export SANITIZER_PRELOAD;
