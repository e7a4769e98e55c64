# fuzzers' entry points over their seeds, without libFuzzer (each fuzz_*.c says how to build it with)
check_LTLIBRARIES += libfuzz_properties.la
libfuzz_properties_la_SOURCES = tests/fuzz/properties.c tests/fuzz/properties.h

fuzz_tests = tests/fuzz/fuzz_request tests/fuzz/fuzz_response
check_PROGRAMS += $(fuzz_tests)
TESTS += $(fuzz_tests)
EXTRA_DIST += tests/fuzz/corpus

tests_fuzz_fuzz_request_SOURCES = tests/fuzz/fuzz_request.c tests/fuzz/driver.c
tests_fuzz_fuzz_request_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_CORPUS='"request"'
tests_fuzz_fuzz_request_LDADD = libfuzz_properties.la libcodec.la

tests_fuzz_fuzz_response_SOURCES = tests/fuzz/fuzz_response.c tests/fuzz/driver.c
tests_fuzz_fuzz_response_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_CORPUS='"response"'
tests_fuzz_fuzz_response_LDADD = libfuzz_properties.la libcodec.la
