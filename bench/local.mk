# SPDX-License-Identifier: BSD-3-Clause
# what is measured: bench/README.md. Nothing of it is built or run by "make all"
EXTRA_PROGRAMS += bench/tools/calls bench/tools/startup bench/tools/nothing bench/tools/socket_calls bench/tools/ways
bench_tools_calls_SOURCES = bench/tools/calls.c bench/tools/trace.c bench/tools/trace.h
bench_tools_startup_SOURCES = bench/tools/startup.c bench/tools/trace.c bench/tools/trace.h
bench_tools_nothing_SOURCES = bench/tools/nothing.c
bench_tools_socket_calls_SOURCES = bench/tools/socket_calls.c
bench_tools_ways_SOURCES = bench/tools/ways.c
bench_tools_ways_LDADD = libcommon.la

# The load generator is built with the tests, since it is tested itself.
check_PROGRAMS += bench/tools/load/load
bench_tools_load_load_SOURCES = bench/tools/load/main.c \
	bench/tools/load/client.c bench/tools/load/client.h bench/tools/load/loop.c bench/tools/load/loop.h \
	bench/tools/load/payload.c bench/tools/load/payload.h bench/tools/load/samples.c bench/tools/load/samples.h \
	bench/tools/load/server.c bench/tools/load/server.h bench/tools/load/tally.c bench/tools/load/tally.h \
	bench/tools/load/way.c bench/tools/load/way.h
bench_tools_load_load_LDADD = libclient.la libcodec.la libcommon.la

# So is the application of ttfb.
check_PROGRAMS += bench/tools/first_byte
bench_tools_first_byte_SOURCES = bench/tools/first_byte.c bench/tools/load/payload.c bench/tools/load/payload.h
bench_tools_first_byte_LDFLAGS = $(AM_LDFLAGS) -pthread

# -rpath makes it a shared library
EXTRA_LTLIBRARIES += libpreloadnothing.la
libpreloadnothing_la_SOURCES = bench/tools/preload_nothing.c
libpreloadnothing_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere

# One name on each line, so that two who add one are not in each other's way; experiments are listed in bench/run as well.
EXTRA_DIST += \
	bench/README.md \
	bench/run \
	bench/plot.py \
	bench/founding.py \
	bench/FOUNDING.md \
	bench/results
EXTRA_DIST += \
	bench/benchlib/__init__.py \
	bench/benchlib/examination.py \
	bench/benchlib/field.py \
	bench/benchlib/gateways.py \
	bench/benchlib/interpreter.py \
	bench/benchlib/machine.py \
	bench/benchlib/mixed.py \
	bench/benchlib/noise.py \
	bench/benchlib/palette.py \
	bench/benchlib/phones.py \
	bench/benchlib/plots.py \
	bench/benchlib/processes.py \
	bench/benchlib/proxies.py \
	bench/benchlib/report.py \
	bench/benchlib/stats.py \
	bench/benchlib/twopaths.py \
	bench/benchlib/varying.py
EXTRA_DIST += \
	bench/experiments/__init__.py \
	bench/experiments/benefit.py \
	bench/experiments/blocks.py \
	bench/experiments/calls.py \
	bench/experiments/connections.py \
	bench/experiments/crowd.py \
	bench/experiments/exam.py \
	bench/experiments/gateway.py \
	bench/experiments/begin.py bench/experiments/failover.py \
	bench/experiments/goodput.py \
	bench/experiments/grid.py \
	bench/experiments/operator.py \
	bench/experiments/parity.py \
	bench/experiments/poc5g.py \
	bench/experiments/several.py \
	bench/experiments/shaped.py \
	bench/experiments/sizes.py \
	bench/experiments/soak.py \
	bench/experiments/startup.py \
	bench/experiments/survive.py \
	bench/experiments/supervise.py \
	bench/experiments/syscalls.py \
	bench/experiments/ttfb.py \
	bench/experiments/ways.py \
	bench/experiments/zero_rtt.py
EXTRA_DIST += \
	bench/models/__init__.py \
	bench/models/benefit.py \
	bench/models/block_delay.py \
	bench/models/density.py \
	bench/models/gaps.py \
	bench/models/highload.py \
	bench/models/jtl.py \
	bench/models/mobile_rtts.py \
	bench/models/operator.py \
	bench/models/poc5g.py \
	bench/models/round_trips.py
EXTRA_DIST += \
	bench/founding/benefit.md \
	bench/founding/blocks.md \
	bench/founding/crowd.md \
	bench/founding/exam.md \
	bench/founding/head.md \
	bench/founding/operator.md \
	bench/founding/poc5g.md \
	bench/founding/ttfb.md
EXTRA_DIST += \
	bench/tools/blocks.py \
	bench/tools/connects.py \
	bench/tools/survive.py \
	bench/tools/exam/StartJMeter.java \
	bench/tools/exam/exam.jmx \
	bench/tools/exam/exam.php \
	bench/tools/exam/exam.sql

# Tests of what computes: no links, and no time passes in them. Nothing of them is compiled, so that sanitizers find nothing.
BENCH_TESTS = \
	tests/bench/test_benefit.py \
	tests/bench/test_density.py \
	tests/bench/test_founding_page.py \
	tests/bench/test_frame.py \
	tests/bench/test_gaps.py \
	tests/bench/test_highload.py \
	tests/bench/test_jtl.py \
	tests/bench/test_mobile_rtts.py \
	tests/bench/test_operator.py \
	tests/bench/test_plot.py \
	tests/bench/test_poc5g.py \
	tests/bench/test_round_trips.py
dist_check_SCRIPTS += $(BENCH_TESTS)
if !SANITIZED
if !THREAD_SANITIZED
TESTS += $(BENCH_TESTS)
endif
endif

CLEANFILES += $(EXTRA_PROGRAMS) $(EXTRA_LTLIBRARIES)

# make bench-calls BENCH_FLAGS=--quick; make bench says what there is. Some experiments need more installed than others.
# They are run within backticks, too, in which there can be no others.
run_bench = $(AM_TESTS_ENVIRONMENT) python=$$(test "$(PYTHON)" = : && echo python3 || echo "$(PYTHON)"); \
	$$python $(top_srcdir)/bench/run
run_founding = $(AM_TESTS_ENVIRONMENT) python=$$(test "$(PYTHON)" = : && echo python3 || echo "$(PYTHON)"); \
	$$python $(top_srcdir)/bench/founding.py
bench:
	@$(run_bench) --list
bench-%: all-am $(EXTRA_PROGRAMS) $(EXTRA_LTLIBRARIES) bench/tools/load/load bench/tools/first_byte
	@$(top_srcdir)/build-tools/install-needs bench
	@needs=`$(run_bench) --needs $*` && { $(top_srcdir)/build-tools/install-needs $$needs || \
		echo "libconvert: measuring what can be measured without them" >&2; }
	@$(run_bench) $(BENCH_FLAGS) $*
	@test $* != founding || echo "make bench-page STORE=bench-results makes bench/FOUNDING.md of these results, if they are of full runs."
# make bench-page STORE=DIR: of the results of a run; without STORE, of those in bench/results
bench-page:
	@$(run_founding) $(if $(STORE),--store $(STORE))
.PHONY: bench bench-page
