# Check programs for the parts without I/O
if HAVE_CHECK
check_LTLIBRARIES += libtestbytes.la
libtestbytes_la_SOURCES = tests/unit/bytes.c tests/unit/bytes.h
libtestbytes_la_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)

EXTRA_DIST += tests/unit/run.h
unit_tests = tests/unit/test_codec_names tests/unit/test_codec_read tests/unit/test_codec_write \
	tests/unit/test_codec_mutation tests/unit/test_sockaddr \
	tests/unit/test_prefix tests/unit/test_handshake tests/unit/test_client_settings
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)

tests_unit_test_codec_names_SOURCES = tests/unit/test_codec_names.c
tests_unit_test_codec_names_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_codec_names_LDADD = libcodec.la $(CHECK_LIBS)

tests_unit_test_codec_read_SOURCES = tests/unit/test_codec_read.c
tests_unit_test_codec_read_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_codec_read_LDADD = libtestbytes.la libcodec.la $(CHECK_LIBS)

tests_unit_test_codec_write_SOURCES = tests/unit/test_codec_write.c
tests_unit_test_codec_write_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_codec_write_LDADD = libtestbytes.la libcodec.la $(CHECK_LIBS)

tests_unit_test_codec_mutation_SOURCES = tests/unit/test_codec_mutation.c
tests_unit_test_codec_mutation_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_codec_mutation_LDADD = libtestbytes.la libfuzz_properties.la libcodec.la $(CHECK_LIBS)

tests_unit_test_sockaddr_SOURCES = tests/unit/test_sockaddr.c
tests_unit_test_sockaddr_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_sockaddr_LDADD = libcommon.la $(CHECK_LIBS)

tests_unit_test_prefix_SOURCES = tests/unit/test_prefix.c
tests_unit_test_prefix_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_prefix_LDADD = libcommon.la $(CHECK_LIBS)

tests_unit_test_handshake_SOURCES = tests/unit/test_handshake.c
tests_unit_test_handshake_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_handshake_LDADD = libtestbytes.la libclient.la libcodec.la libcommon.la $(CHECK_LIBS)

tests_unit_test_client_settings_SOURCES = tests/unit/test_client_settings.c
tests_unit_test_client_settings_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_client_settings_LDADD = libclient.la libcodec.la libcommon.la $(CHECK_LIBS)
endif

# convertd's parts
if HAVE_CHECK
convertd_unit_tests = tests/unit/test_request tests/unit/test_relay
check_PROGRAMS += $(convertd_unit_tests)
TESTS += $(convertd_unit_tests)

tests_unit_test_request_SOURCES = tests/unit/test_request.c
tests_unit_test_request_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_request_LDADD = libtestbytes.la libconvertd.la $(CHECK_LIBS)

tests_unit_test_relay_SOURCES = tests/unit/test_relay.c
tests_unit_test_relay_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_relay_LDADD = libconvertd.la $(CHECK_LIBS)
endif
