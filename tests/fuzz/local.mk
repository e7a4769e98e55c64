# SPDX-License-Identifier: BSD-3-Clause
# Each fuzzer runs over its corpus and mutations of it, without libFuzzer (each fuzz_*.c says how to build it with libFuzzer).
check_LTLIBRARIES += libfuzz_properties.la
libfuzz_properties_la_SOURCES = tests/fuzz/properties.c tests/fuzz/properties.h

check_LTLIBRARIES += libfuzz_srv_properties.la
libfuzz_srv_properties_la_SOURCES = tests/fuzz/srv_properties.c tests/fuzz/srv_properties.h

fuzz_tests = tests/fuzz/fuzz_request tests/fuzz/fuzz_response tests/fuzz/fuzz_cache \
	tests/fuzz/fuzz_srv tests/fuzz/fuzz_socket_record tests/fuzz/fuzz_config tests/fuzz/fuzz_syn_packet \
	tests/fuzz/fuzz_warden
check_PROGRAMS += $(fuzz_tests)
TESTS += $(fuzz_tests)
EXTRA_DIST += tests/fuzz/corpus tests/fuzz/problem_lines.h

if HAVE_GATEWAY
check_PROGRAMS += tests/fuzz/fuzz_gateway
TESTS += tests/fuzz/fuzz_gateway
endif
tests_fuzz_fuzz_gateway_SOURCES = tests/fuzz/fuzz_gateway.c tests/fuzz/driver.c
tests_fuzz_fuzz_gateway_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_CORPUS='"gateway"'
tests_fuzz_fuzz_gateway_LDADD = libgateway.la libserve.la libclient.la libcodec.la libcommon.la

tests_fuzz_fuzz_request_SOURCES = tests/fuzz/fuzz_request.c tests/fuzz/driver.c
tests_fuzz_fuzz_request_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_CORPUS='"request"'
tests_fuzz_fuzz_request_LDADD = libfuzz_properties.la libcodec.la

tests_fuzz_fuzz_response_SOURCES = tests/fuzz/fuzz_response.c tests/fuzz/driver.c
tests_fuzz_fuzz_response_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_CORPUS='"response"'
tests_fuzz_fuzz_response_LDADD = libfuzz_properties.la libcodec.la

tests_fuzz_fuzz_config_SOURCES = tests/fuzz/fuzz_config.c tests/fuzz/driver.c
tests_fuzz_fuzz_config_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_CORPUS='"config"'
tests_fuzz_fuzz_config_LDADD = libconvertd.la

tests_fuzz_fuzz_syn_packet_SOURCES = tests/fuzz/fuzz_syn_packet.c tests/fuzz/driver.c \
	tests/unit/syn_build.c tests/unit/syn_build.h
tests_fuzz_fuzz_syn_packet_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_CORPUS='"syn_packet"'
tests_fuzz_fuzz_syn_packet_LDADD = libconvertd.la

tests_fuzz_fuzz_warden_SOURCES = tests/fuzz/fuzz_warden.c tests/fuzz/driver.c
tests_fuzz_fuzz_warden_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_CORPUS='"warden"'
tests_fuzz_fuzz_warden_LDADD = libconvertd.la

tests_fuzz_fuzz_cache_SOURCES = tests/fuzz/fuzz_cache.c tests/fuzz/driver.c \
	tests/fuzz/cache_properties.c tests/fuzz/cache_properties.h
tests_fuzz_fuzz_cache_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_CORPUS='"cache"'
tests_fuzz_fuzz_cache_LDADD = libclient.la libcodec.la libcommon.la

tests_fuzz_fuzz_srv_SOURCES = tests/fuzz/fuzz_srv.c tests/fuzz/driver.c
tests_fuzz_fuzz_srv_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_CORPUS='"srv"'
tests_fuzz_fuzz_srv_LDADD = libfuzz_srv_properties.la libclient.la

check_PROGRAMS += tests/fuzz/fuzz_elf
TESTS += tests/fuzz/fuzz_elf
tests_fuzz_fuzz_elf_SOURCES = tests/fuzz/fuzz_elf.c tests/fuzz/driver.c
tests_fuzz_fuzz_elf_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_CORPUS='"elf"'
tests_fuzz_fuzz_elf_LDADD = libconvertize.la libcommon.la

tests_fuzz_fuzz_socket_record_SOURCES = tests/fuzz/fuzz_socket_record.c tests/fuzz/driver.c \
	src/shim/process/socket_record.c
tests_fuzz_fuzz_socket_record_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_CORPUS='"socket_record"'
tests_fuzz_fuzz_socket_record_LDADD = libcommon.la

convertize_fuzz_tests = tests/fuzz/fuzz_conf tests/fuzz/fuzz_unit
check_PROGRAMS += $(convertize_fuzz_tests)
TESTS += $(convertize_fuzz_tests)

tests_fuzz_fuzz_conf_SOURCES = tests/fuzz/fuzz_conf.c tests/fuzz/driver.c
tests_fuzz_fuzz_conf_CPPFLAGS = $(CONVERTIZE_CPPFLAGS) -DFUZZ_CORPUS='"conf"'
tests_fuzz_fuzz_conf_LDADD = libconvertize.la libcommon.la

tests_fuzz_fuzz_unit_SOURCES = tests/fuzz/fuzz_unit.c tests/fuzz/driver.c
tests_fuzz_fuzz_unit_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_CORPUS='"unit"'
tests_fuzz_fuzz_unit_LDADD = libconvertize.la libcommon.la
