# Other people's test suites, see README.md: run by hand. "make suites" builds what tests/suites/run needs.
EXTRA_LTLIBRARIES += libconvertloop.la
libconvertloop_la_SOURCES = tests/suites/loopback.c
libconvertloop_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -no-undefined -rpath /nowhere \
	-export-symbols $(srcdir)/src/shim/libconvert.sym -Wl,-z,now -Wl,-z,nodelete \
	-Wl,-Bsymbolic-functions $(UNDEFINED_VERSION) -Wl,--wrap=policy_decide
libconvertloop_la_LIBADD = $(libconvert_la_OBJECTS) $(libconvert_la_LIBADD)
libconvertloop_la_DEPENDENCIES = $(libconvert_la_OBJECTS) $(libconvert_la_DEPENDENCIES)

.PHONY: suites
suites: libconvert.la libconvertloop.la convertd$(EXEEXT)
EXTRA_DIST += tests/suites/README.md tests/suites/run tests/suites/bed.py tests/suites/tap.py \
	tests/suites/suite_cpython.py tests/suites/suite_curl.py tests/suites/suite_glib.py \
	tests/suites/suite_libevent.py tests/suites/suite_libuv.py tests/suites/suite_perl.py
