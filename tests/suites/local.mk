# SPDX-License-Identifier: BSD-3-Clause
# Other people's test suites, see README.md: run by hand. "make suites" builds what tests/suites/run needs.
LOOPBACK_ADDRESS = -Wl,--wrap=convert_address_is_valid
EXTRA_LTLIBRARIES += libloopback.la libconvertloop.la
libloopback_la_SOURCES = tests/suites/loopback_address.c
libconvertloop_la_SOURCES = tests/suites/loopback_policy.c
libconvertloop_la_LDFLAGS = $(libconvert_la_LDFLAGS) -rpath /nowhere $(LOOPBACK_ADDRESS) -Wl,--wrap=policy_decide
libconvertloop_la_LIBADD = $(libconvert_la_OBJECTS) libloopback.la $(libconvert_la_LIBADD)
libconvertloop_la_DEPENDENCIES = $(libconvert_la_OBJECTS) libloopback.la $(libconvert_la_DEPENDENCIES)

EXTRA_PROGRAMS += convertdloop
convertdloop_SOURCES =
convertdloop_LDFLAGS = $(convertd_LDFLAGS) $(LOOPBACK_ADDRESS)
convertdloop_LDADD = $(convertd_OBJECTS) $(convertd_LDADD) libloopback.la

.PHONY: suites
suites: libconvert.la libconvertloop.la convertdloop$(EXEEXT)
EXTRA_DIST += tests/suites/README.md tests/suites/run tests/suites/bed.py tests/suites/tap.py \
	tests/suites/suite_cpython.py tests/suites/suite_curl.py tests/suites/suite_glib.py \
	tests/suites/suite_libevent.py tests/suites/suite_libuv.py tests/suites/suite_node.py \
	tests/suites/suite_perl.py tests/suites/suite_pypi.py tests/suites/suite_ruby.py \
	tests/suites/suite_tokio.py
