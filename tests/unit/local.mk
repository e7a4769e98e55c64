# SPDX-License-Identifier: BSD-3-Clause
# Check programs for the parts without I/O
if HAVE_CHECK
check_LTLIBRARIES += libtestbytes.la
libtestbytes_la_SOURCES = tests/unit/bytes.c tests/unit/bytes.h
libtestbytes_la_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)

EXTRA_DIST += tests/unit/cache_open.h tests/unit/run.h tests/unit/tempdir.h
unit_tests = tests/unit/test_codec_names tests/unit/test_codec_read tests/unit/test_codec_private \
	tests/unit/test_codec_write tests/unit/test_codec_write_private tests/unit/test_codec_write_messages tests/unit/test_codec_mutation tests/unit/test_sockaddr \
	tests/unit/test_prefix tests/unit/test_handshake tests/unit/test_client_settings \
	tests/unit/test_cache tests/unit/test_cache_file tests/unit/test_cache_damage tests/unit/test_cache_race \
	tests/unit/test_notes \
	tests/unit/test_srv tests/unit/test_socket_record tests/unit/test_converters tests/unit/test_converters_names tests/unit/test_paths tests/unit/test_paths_facts \
	tests/unit/test_front_end tests/unit/test_front_end_silence tests/unit/test_front_end_ways \
	tests/unit/test_supervise_filter tests/unit/test_supervise_blind \
	tests/unit/test_engine_decide tests/unit/test_engine_attempt tests/unit/test_engine_dial tests/unit/test_engine_silence tests/unit/test_engine_paths tests/unit/test_engine_surveys tests/unit/test_engine_notes tests/unit/test_engine_remedies tests/unit/test_engine_faults tests/unit/test_engine_front_end tests/unit/test_supervise_caller tests/unit/test_supervise_pause
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)

tests_unit_test_supervise_filter_SOURCES = tests/unit/test_supervise_filter.c
tests_unit_test_supervise_filter_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_supervise_filter_LDADD = libsupervise.la $(engine_libs) $(CHECK_LIBS)

tests_unit_test_supervise_blind_SOURCES = tests/unit/test_supervise_blind.c
tests_unit_test_supervise_blind_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_supervise_blind_LDADD = libsupervise.la $(engine_libs) $(CHECK_LIBS)

tests_unit_test_supervise_caller_SOURCES = tests/unit/test_supervise_caller.c
tests_unit_test_supervise_caller_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_supervise_caller_LDADD = libsupervise.la $(engine_libs) $(CHECK_LIBS)

engine_libs = libengine.la libhost.la libclient.la libcodec.la libcommon.la
engine_world = tests/unit/engine_world.c tests/unit/engine_world.h
tests_unit_test_engine_attempt_SOURCES = tests/unit/test_engine_attempt.c $(engine_world)
tests_unit_test_engine_attempt_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_engine_attempt_LDADD = libengine.la libclient.la libcodec.la libcommon.la $(CHECK_LIBS)

tests_unit_test_engine_dial_SOURCES = tests/unit/test_engine_dial.c $(engine_world)
tests_unit_test_engine_dial_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_engine_dial_LDADD = libengine.la libclient.la libcodec.la libcommon.la $(CHECK_LIBS)

tests_unit_test_engine_silence_SOURCES = tests/unit/test_engine_silence.c $(engine_world)
tests_unit_test_engine_silence_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_engine_silence_LDADD = libengine.la libclient.la libcodec.la libcommon.la $(CHECK_LIBS)

tests_unit_test_engine_paths_SOURCES = tests/unit/test_engine_paths.c $(engine_world)
tests_unit_test_engine_paths_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_engine_paths_LDADD = libengine.la libclient.la libcodec.la libcommon.la $(CHECK_LIBS)

tests_unit_test_engine_notes_SOURCES = tests/unit/test_engine_notes.c $(engine_world)
tests_unit_test_engine_notes_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_engine_notes_LDADD = libengine.la libclient.la libcodec.la libcommon.la $(CHECK_LIBS)

tests_unit_test_engine_remedies_SOURCES = tests/unit/test_engine_remedies.c $(engine_world)
tests_unit_test_engine_remedies_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_engine_remedies_LDADD = libengine.la libclient.la libcodec.la libcommon.la $(CHECK_LIBS)

tests_unit_test_engine_surveys_SOURCES = tests/unit/test_engine_surveys.c $(engine_world)
tests_unit_test_engine_surveys_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_engine_surveys_LDADD = libengine.la libclient.la libcodec.la libcommon.la $(CHECK_LIBS)

tests_unit_test_engine_faults_SOURCES = tests/unit/test_engine_faults.c $(engine_world)
tests_unit_test_engine_faults_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_engine_faults_LDADD = libengine.la libclient.la libcodec.la libcommon.la $(CHECK_LIBS)

tests_unit_test_engine_front_end_SOURCES = tests/unit/test_engine_front_end.c
tests_unit_test_engine_front_end_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_engine_front_end_LDADD = $(engine_libs) $(CHECK_LIBS)

tests_unit_test_engine_decide_SOURCES = tests/unit/test_engine_decide.c
tests_unit_test_engine_decide_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_engine_decide_LDADD = $(engine_libs) $(CHECK_LIBS)

tests_unit_test_supervise_pause_SOURCES = tests/unit/test_supervise_pause.c
tests_unit_test_supervise_pause_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -pthread
tests_unit_test_supervise_pause_LDADD = libsupervise.la $(engine_libs) $(CHECK_LIBS)

tests_unit_test_codec_names_SOURCES = tests/unit/test_codec_names.c
tests_unit_test_codec_names_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_codec_names_LDADD = libcodec.la $(CHECK_LIBS)

tests_unit_test_codec_read_SOURCES = tests/unit/test_codec_read.c
tests_unit_test_codec_read_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_codec_read_LDADD = libtestbytes.la libcodec.la $(CHECK_LIBS)

tests_unit_test_codec_private_SOURCES = tests/unit/test_codec_private.c
tests_unit_test_codec_private_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_codec_private_LDADD = libtestbytes.la libcodec.la $(CHECK_LIBS)

tests_unit_test_codec_write_SOURCES = tests/unit/test_codec_write.c tests/unit/codec_fixture.h
tests_unit_test_codec_write_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_codec_write_LDADD = libtestbytes.la libcodec.la $(CHECK_LIBS)

tests_unit_test_codec_write_private_SOURCES = tests/unit/test_codec_write_private.c tests/unit/codec_fixture.h
tests_unit_test_codec_write_private_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_codec_write_private_LDADD = libtestbytes.la libcodec.la $(CHECK_LIBS)

tests_unit_test_codec_write_messages_SOURCES = tests/unit/test_codec_write_messages.c tests/unit/codec_fixture.h
tests_unit_test_codec_write_messages_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_codec_write_messages_LDADD = libtestbytes.la libcodec.la $(CHECK_LIBS)

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

tests_unit_test_socket_record_SOURCES = tests/unit/test_socket_record.c \
	src/shim/process/socket_record.c
tests_unit_test_socket_record_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_socket_record_LDADD = libcommon.la $(CHECK_LIBS)

tests_unit_test_cache_SOURCES = tests/unit/test_cache.c
tests_unit_test_cache_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -pthread
tests_unit_test_cache_LDADD = libclient.la libcodec.la libcommon.la $(CHECK_LIBS)

tests_unit_test_notes_SOURCES = tests/unit/test_notes.c
tests_unit_test_notes_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_notes_LDADD = libclient.la libcodec.la libcommon.la $(CHECK_LIBS)
tests_unit_test_cache_file_SOURCES = tests/unit/test_cache_file.c tests/unit/cache_fixture.h
tests_unit_test_cache_file_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_cache_file_LDADD = libclient.la libcodec.la libcommon.la $(CHECK_LIBS)

tests_unit_test_cache_damage_SOURCES = tests/unit/test_cache_damage.c tests/unit/cache_fixture.h
tests_unit_test_cache_damage_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_cache_damage_LDADD = libclient.la libcodec.la libcommon.la $(CHECK_LIBS)

tests_unit_test_cache_race_SOURCES = tests/unit/test_cache_race.c
tests_unit_test_cache_race_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -pthread
tests_unit_test_cache_race_LDADD = libclient.la libcodec.la libcommon.la $(CHECK_LIBS)

tests_unit_test_converters_names_SOURCES = tests/unit/test_converters_names.c
tests_unit_test_converters_names_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_converters_names_LDADD = libclient.la libcodec.la libcommon.la $(CHECK_LIBS)

tests_unit_test_converters_SOURCES = tests/unit/test_converters.c
tests_unit_test_converters_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_converters_LDADD = libclient.la libcodec.la libcommon.la $(CHECK_LIBS)

tests_unit_test_paths_SOURCES = tests/unit/test_paths.c
tests_unit_test_paths_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_paths_LDADD = libclient.la libcodec.la libcommon.la $(CHECK_LIBS)

tests_unit_test_paths_facts_SOURCES = tests/unit/test_paths_facts.c
tests_unit_test_paths_facts_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_paths_facts_LDADD = libclient.la libcodec.la libcommon.la $(CHECK_LIBS)

tests_unit_test_front_end_SOURCES = tests/unit/test_front_end.c tests/unit/front_end_world.c tests/unit/front_end_world.h
tests_unit_test_front_end_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_front_end_LDADD = libclient.la libcodec.la libcommon.la $(CHECK_LIBS)
tests_unit_test_front_end_silence_SOURCES = tests/unit/test_front_end_silence.c tests/unit/front_end_world.c tests/unit/front_end_world.h
tests_unit_test_front_end_silence_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_front_end_silence_LDADD = libclient.la libcodec.la libcommon.la $(CHECK_LIBS)
tests_unit_test_front_end_ways_SOURCES = tests/unit/test_front_end_ways.c tests/unit/front_end_world.c tests/unit/front_end_world.h
tests_unit_test_front_end_ways_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_front_end_ways_LDADD = libclient.la libcodec.la libcommon.la $(CHECK_LIBS)

tests_unit_test_srv_SOURCES = tests/unit/test_srv.c
tests_unit_test_srv_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_srv_LDADD = libtestbytes.la libfuzz_srv_properties.la libclient.la $(CHECK_LIBS)
endif

# convertd's parts
if HAVE_CHECK
convertd_unit_tests = tests/unit/test_request tests/unit/test_relay tests/unit/test_relay_events tests/unit/test_settings \
	tests/unit/test_access tests/unit/test_limits tests/unit/test_limits_room tests/unit/test_limits_memory tests/unit/test_shares tests/unit/test_cookies \
	tests/unit/test_relay_watch tests/unit/test_sources tests/unit/test_sysctls tests/unit/test_warden \
	tests/unit/test_syn_packet tests/unit/test_log tests/unit/test_metrics tests/unit/test_hold_table tests/unit/test_hold_serve tests/unit/test_hold_plugs tests/unit/test_session_decision tests/unit/test_syn_decision \
	tests/unit/test_judgement tests/unit/test_blocks tests/unit/test_poller tests/unit/test_families tests/unit/test_proof tests/unit/test_native_refusal tests/unit/test_demand
check_PROGRAMS += $(convertd_unit_tests)
TESTS += $(convertd_unit_tests)

if HAVE_GATEWAY
check_PROGRAMS += tests/unit/test_gateway_settings
TESTS += tests/unit/test_gateway_settings
endif
tests_unit_test_gateway_settings_SOURCES = tests/unit/test_gateway_settings.c
tests_unit_test_gateway_settings_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_gateway_settings_LDADD = libgateway.la libserve.la libclient.la libcodec.la libcommon.la $(CHECK_LIBS)

tests_unit_test_request_SOURCES = tests/unit/test_request.c
tests_unit_test_request_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_request_LDADD = libtestbytes.la libconvertd.la $(CHECK_LIBS)

tests_unit_test_judgement_SOURCES = tests/unit/test_judgement.c
tests_unit_test_judgement_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_judgement_LDADD = libtestbytes.la libconvertd.la $(CHECK_LIBS)

tests_unit_test_relay_SOURCES = tests/unit/test_relay.c tests/unit/relay_pairs.c tests/unit/relay_pairs.h
tests_unit_test_relay_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_relay_LDADD = libconvertd.la $(CHECK_LIBS)

tests_unit_test_relay_events_SOURCES = tests/unit/test_relay_events.c tests/unit/relay_pairs.c tests/unit/relay_pairs.h
tests_unit_test_relay_events_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_relay_events_LDADD = libconvertd.la $(CHECK_LIBS)

tests_unit_test_settings_SOURCES = tests/unit/test_settings.c
tests_unit_test_settings_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_settings_LDADD = libconvertd.la $(CHECK_LIBS)

tests_unit_test_access_SOURCES = tests/unit/test_access.c
tests_unit_test_access_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_access_LDADD = libconvertd.la $(CHECK_LIBS)

limits_world = tests/unit/limits_world.c tests/unit/limits_world.h
tests_unit_test_limits_SOURCES = tests/unit/test_limits.c $(limits_world)
tests_unit_test_limits_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -pthread
tests_unit_test_limits_LDFLAGS = $(AM_LDFLAGS) -pthread
tests_unit_test_limits_LDADD = libconvertd.la $(CHECK_LIBS)
tests_unit_test_limits_room_SOURCES = tests/unit/test_limits_room.c $(limits_world)
tests_unit_test_limits_room_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_limits_room_LDADD = libconvertd.la $(CHECK_LIBS)
tests_unit_test_limits_memory_SOURCES = tests/unit/test_limits_memory.c $(limits_world)
tests_unit_test_limits_memory_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_limits_memory_LDADD = libconvertd.la $(CHECK_LIBS)

tests_unit_test_shares_SOURCES = tests/unit/test_shares.c
tests_unit_test_shares_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(SODIUM_CFLAGS)
tests_unit_test_shares_LDADD = libconvertd.la $(SODIUM_LIBS) $(CHECK_LIBS)

tests_unit_test_cookies_SOURCES = tests/unit/test_cookies.c
tests_unit_test_cookies_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_cookies_LDADD = libtestbytes.la libconvertd.la $(CHECK_LIBS)

tests_unit_test_families_SOURCES = tests/unit/test_families.c
tests_unit_test_families_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_families_LDADD = libconvertd.la $(CHECK_LIBS)



tests_unit_test_sources_SOURCES = tests/unit/test_sources.c
tests_unit_test_sources_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_sources_LDADD = libconvertd.la $(CHECK_LIBS)

tests_unit_test_relay_watch_SOURCES = tests/unit/test_relay_watch.c
tests_unit_test_relay_watch_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_relay_watch_LDADD = libconvertd.la $(CHECK_LIBS)

tests_unit_test_blocks_SOURCES = tests/unit/test_blocks.c
tests_unit_test_blocks_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_blocks_LDADD = libconvertd.la $(CHECK_LIBS)

tests_unit_test_poller_SOURCES = tests/unit/test_poller.c
tests_unit_test_poller_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(EVENT_CFLAGS)
tests_unit_test_poller_LDADD = libserve.la $(CHECK_LIBS) $(EVENT_LIBS)

tests_unit_test_proof_SOURCES = tests/unit/test_proof.c
tests_unit_test_proof_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_proof_LDADD = libconvertd.la $(CHECK_LIBS)

tests_unit_test_native_refusal_SOURCES = tests/unit/test_native_refusal.c
tests_unit_test_native_refusal_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_native_refusal_LDADD = libconvertd.la $(CHECK_LIBS)

tests_unit_test_demand_SOURCES = tests/unit/test_demand.c
tests_unit_test_demand_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -pthread
tests_unit_test_demand_LDADD = libconvertd.la $(CHECK_LIBS)


tests_unit_test_hold_table_SOURCES = tests/unit/test_hold_table.c
tests_unit_test_hold_table_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(SODIUM_CFLAGS) -pthread
tests_unit_test_hold_table_LDADD = libconvertd.la $(CHECK_LIBS)

syn_world = tests/unit/syn_world.c tests/unit/syn_world.h tests/unit/fake_events.c tests/unit/fake_events.h tests/unit/syn_build.c \
	tests/unit/syn_build.h
tests_unit_test_hold_serve_SOURCES = tests/unit/test_hold_serve.c $(syn_world)
tests_unit_test_hold_serve_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(EVENT_CFLAGS) $(SODIUM_CFLAGS) -pthread
tests_unit_test_hold_serve_LDADD = libconvertd.la $(CHECK_LIBS)
tests_unit_test_hold_plugs_SOURCES = tests/unit/test_hold_plugs.c $(syn_world)
tests_unit_test_hold_plugs_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(EVENT_CFLAGS) $(SODIUM_CFLAGS) -pthread
tests_unit_test_hold_plugs_LDADD = libconvertd.la $(CHECK_LIBS)

tests_unit_test_session_decision_SOURCES = tests/unit/test_session_decision.c
tests_unit_test_session_decision_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(EVENT_CFLAGS)
tests_unit_test_session_decision_LDADD = libconvertd.la $(CHECK_LIBS)

tests_unit_test_syn_decision_SOURCES = tests/unit/test_syn_decision.c
tests_unit_test_syn_decision_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_syn_decision_LDADD = libconvertd.la $(CHECK_LIBS)

tests_unit_test_log_SOURCES = tests/unit/test_log.c
tests_unit_test_log_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -pthread
tests_unit_test_log_LDADD = libconvertd.la $(CHECK_LIBS)

tests_unit_test_metrics_SOURCES = tests/unit/test_metrics.c
tests_unit_test_metrics_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -pthread
tests_unit_test_metrics_LDADD = libconvertd.la $(CHECK_LIBS)

tests_unit_test_warden_SOURCES = tests/unit/test_warden.c
tests_unit_test_warden_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_warden_LDADD = libconvertd.la $(CHECK_LIBS)

tests_unit_test_sysctls_SOURCES = tests/unit/test_sysctls.c
tests_unit_test_sysctls_CPPFLAGS = $(AM_CPPFLAGS) -DSRCDIR='"$(abs_top_srcdir)"'
tests_unit_test_sysctls_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_sysctls_LDADD = libconvertd.la $(CHECK_LIBS)

if SYSCALL_FILTER
check_PROGRAMS += tests/unit/test_syscall_filter
TESTS += tests/unit/test_syscall_filter
tests_unit_test_syscall_filter_SOURCES = tests/unit/test_syscall_filter.c
tests_unit_test_syscall_filter_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -pthread
tests_unit_test_syscall_filter_LDADD = libconvertd.la $(CHECK_LIBS)
endif

tests_unit_test_syn_packet_SOURCES = tests/unit/test_syn_packet.c tests/unit/syn_build.c tests/unit/syn_build.h
tests_unit_test_syn_packet_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_syn_packet_LDADD = libtestbytes.la libconvertd.la $(CHECK_LIBS)
endif

# convertize's parts
if HAVE_CHECK
convertize_unit_tests = tests/unit/test_conf tests/unit/test_host tests/unit/test_network_policy tests/unit/test_managed_paths \
	tests/unit/test_managed_choice tests/unit/test_outages \
	tests/unit/test_outages_kept tests/unit/test_units tests/unit/test_elf tests/unit/test_script tests/unit/test_preload \
	tests/unit/test_report tests/unit/test_columns tests/unit/test_status tests/unit/test_traffic tests/unit/test_wrapper tests/unit/test_netlink tests/unit/test_library
check_PROGRAMS += $(convertize_unit_tests)
TESTS += $(convertize_unit_tests)

tests_unit_test_elf_SOURCES = tests/unit/test_elf.c tests/unit/elf_image.c tests/unit/elf_image.h
tests_unit_test_elf_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_elf_LDADD = libconvertize.la libcommon.la $(CHECK_LIBS)

tests_unit_test_script_SOURCES = tests/unit/test_script.c
tests_unit_test_script_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_script_LDADD = libtestbytes.la libconvertize.la libcommon.la $(CHECK_LIBS)

tests_unit_test_preload_SOURCES = tests/unit/test_preload.c
tests_unit_test_preload_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_preload_LDADD = libconvertize.la libcommon.la $(CHECK_LIBS)

tests_unit_test_library_SOURCES = tests/unit/test_library.c tests/unit/tempdir.h tests/unit/elf_image.c tests/unit/elf_image.h
tests_unit_test_library_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_library_LDADD = libconvertize.la libcommon.la $(CHECK_LIBS)

paths_world = tests/unit/paths_world.c tests/unit/paths_world.h
tests_unit_test_host_SOURCES = tests/unit/test_host.c tests/unit/fake_lookup.h src/host/networks.c src/host/networks.h $(paths_world)
tests_unit_test_host_CPPFLAGS = $(AM_CPPFLAGS) -include $(srcdir)/tests/unit/fake_lookup.h
tests_unit_test_host_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(MNL_CFLAGS)
tests_unit_test_host_LDADD = libpaths.la libconvertize.la libcommon.la $(CHECK_LIBS)

tests_unit_test_network_policy_SOURCES = tests/unit/test_network_policy.c
tests_unit_test_network_policy_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_network_policy_LDADD = libpaths.la libconvertize.la libcommon.la $(CHECK_LIBS)
tests_unit_test_managed_paths_SOURCES = tests/unit/test_managed_paths.c $(paths_world)
tests_unit_test_managed_paths_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(MNL_CFLAGS)
tests_unit_test_managed_paths_LDADD = libpaths.la libconvertize.la libcommon.la $(CHECK_LIBS)
tests_unit_test_netlink_SOURCES = tests/unit/test_netlink.c
tests_unit_test_netlink_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(MNL_CFLAGS)
tests_unit_test_netlink_LDADD = libpathskernel.la libcommon.la $(CHECK_LIBS)
tests_unit_test_managed_choice_SOURCES = tests/unit/test_managed_choice.c $(paths_world)
tests_unit_test_managed_choice_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(MNL_CFLAGS)
tests_unit_test_managed_choice_LDADD = libpaths.la libconvertize.la libcommon.la $(CHECK_LIBS)

outages_world = tests/unit/outages_world.c tests/unit/outages_world.h
tests_unit_test_outages_SOURCES = tests/unit/test_outages.c $(outages_world)
tests_unit_test_outages_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(MNL_CFLAGS)
tests_unit_test_outages_LDADD = libpaths.la libcommon.la $(CHECK_LIBS)
tests_unit_test_outages_kept_SOURCES = tests/unit/test_outages_kept.c $(outages_world)
tests_unit_test_outages_kept_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(MNL_CFLAGS)
tests_unit_test_outages_kept_LDADD = libpaths.la libcommon.la $(CHECK_LIBS)

tests_unit_test_conf_SOURCES = tests/unit/test_conf.c
tests_unit_test_conf_CPPFLAGS = $(CONVERTIZE_CPPFLAGS)
tests_unit_test_conf_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_conf_LDADD = libconvertize.la libcommon.la $(CHECK_LIBS)

tests_unit_test_units_SOURCES = tests/unit/test_units.c
tests_unit_test_units_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_units_LDADD = libconvertize.la libcommon.la $(CHECK_LIBS)

tests_unit_test_wrapper_SOURCES = tests/unit/test_wrapper.c
tests_unit_test_wrapper_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_wrapper_LDADD = libconvertize.la libcommon.la $(CHECK_LIBS)

tests_unit_test_columns_SOURCES = tests/unit/test_columns.c
tests_unit_test_columns_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_columns_LDADD = libconvertize.la libcommon.la $(CHECK_LIBS)
tests_unit_test_traffic_SOURCES = tests/unit/test_traffic.c
tests_unit_test_traffic_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(MNL_CFLAGS)
tests_unit_test_traffic_LDADD = libpaths.la libconvertize.la libcommon.la $(CHECK_LIBS)
tests_unit_test_status_SOURCES = tests/unit/test_status.c src/convertize/status/status_join.c src/convertize/status/status_print.c
tests_unit_test_status_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_status_LDADD = libpaths.la libconvertize.la libclient.la libcodec.la libcommon.la $(CHECK_LIBS)
tests_unit_test_report_SOURCES = tests/unit/test_report.c
tests_unit_test_report_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_test_report_LDADD = libconvertize.la libcommon.la $(CHECK_LIBS)
endif

# This compares the table of requirements with the tree.
dist_check_SCRIPTS += tests/unit/check_rfc8803.py
TESTS += tests/unit/check_rfc8803.py

# parts of the shim that need little else
if HAVE_CHECK
shim_unit_tests = tests/unit/test_conn
check_PROGRAMS += $(shim_unit_tests)
TESTS += $(shim_unit_tests)

tests_unit_test_conn_SOURCES = tests/unit/test_conn.c src/shim/socket/conn.c src/shim/socket/conn.h src/shim/socket/conn_phase.c src/shim/socket/phase.h \
	src/shim/system/rings.c src/shim/system/rings.h
tests_unit_test_conn_CPPFLAGS = $(AM_CPPFLAGS) -DNATIVE_TIMES
tests_unit_test_conn_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -pthread
tests_unit_test_conn_LDADD = libcommon.la $(CHECK_LIBS)
endif

# the shim without a kernel: its own sources, and the fake kernel behind next.h (fake_kernel.h lists what that replaces)
if HAVE_CHECK
check_LTLIBRARIES += libshimworld.la
libshimworld_la_SOURCES = tests/unit/shim_world.c tests/unit/shim_world.h tests/unit/fake_kernel.h tests/unit/fake_private.h \
	tests/unit/fake_kernel.c tests/unit/fake_network.c tests/unit/fake_socket.c tests/unit/fake_options.c tests/unit/fake_epoll.c \
	tests/unit/fake_threads.c tests/unit/fake_beneath.c tests/unit/fake_faults.c tests/unit/fake_hooks.h \
	src/shim/system/usermem.c src/shim/socket/conn.c src/shim/socket/conn_phase.c src/shim/socket/app_options.c src/shim/wait/watch.c \
	src/shim/wait/deadline_timer.c src/shim/connect/operations.c src/shim/connect/conversion.c src/shim/connect/conversion_wait.c src/shim/connect/gate.c \
	src/shim/connect/follow.c src/shim/connect/replace.c src/shim/connect/settle.c src/shim/connect/ring_use.c \
	src/engine/attempt.c src/engine/decide.c src/engine/steps.c src/engine/path_start.c \
	src/host/path_list.c src/host/path_probe.c src/host/survey.c src/host/network_policy.c \
	src/shim/process/leave.c \
	src/shim/hooks/socket.c src/shim/hooks/sockopt.c src/shim/hooks/io.c src/shim/hooks/poll.c \
	src/shim/hooks/epoll.c
libshimworld_la_CPPFLAGS = $(AM_CPPFLAGS) -DNATIVE_TIMES -include $(srcdir)/tests/unit/fake_hooks.h
libshimworld_la_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -pthread
libshimworld_la_LIBADD = libclient.la libcodec.la libcommon.la

shim_world_tests = tests/unit/test_shim_states tests/unit/test_shim_transitions tests/unit/test_shim_faults \
	tests/unit/test_shim_phases tests/unit/test_shim_threads
check_PROGRAMS += $(shim_world_tests)
TESTS += $(shim_world_tests)

tests_unit_test_shim_states_SOURCES = tests/unit/test_shim_states.c
tests_unit_test_shim_states_CPPFLAGS = $(AM_CPPFLAGS) -DNATIVE_TIMES
tests_unit_test_shim_states_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -pthread
tests_unit_test_shim_states_LDADD = libshimworld.la $(CHECK_LIBS)

tests_unit_test_shim_transitions_SOURCES = tests/unit/test_shim_transitions.c tests/unit/shim_runs.h tests/unit/shim_runs.c \
	tests/unit/shim_runs_asked.c tests/unit/shim_runs_otherwise.c tests/unit/shim_runs_silent.c
tests_unit_test_shim_transitions_CPPFLAGS = $(AM_CPPFLAGS) -DNATIVE_TIMES
tests_unit_test_shim_transitions_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -pthread
tests_unit_test_shim_transitions_LDADD = libshimworld.la $(CHECK_LIBS)

tests_unit_test_shim_faults_SOURCES = tests/unit/test_shim_faults.c
tests_unit_test_shim_faults_CPPFLAGS = $(AM_CPPFLAGS) -DNATIVE_TIMES
tests_unit_test_shim_faults_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -pthread
tests_unit_test_shim_faults_LDADD = libshimworld.la $(CHECK_LIBS)

tests_unit_test_shim_threads_SOURCES = tests/unit/test_shim_threads.c
tests_unit_test_shim_threads_CPPFLAGS = $(AM_CPPFLAGS) -DNATIVE_TIMES
tests_unit_test_shim_threads_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -pthread
tests_unit_test_shim_threads_LDADD = libshimworld.la $(CHECK_LIBS)

tests_unit_test_shim_phases_SOURCES = tests/unit/test_shim_phases.c
tests_unit_test_shim_phases_CPPFLAGS = $(AM_CPPFLAGS) -DNATIVE_TIMES
tests_unit_test_shim_phases_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -pthread
tests_unit_test_shim_phases_LDADD = libshimworld.la $(CHECK_LIBS)
endif

# The tests that need no rights and a few seconds, for builders of packages.
check_unit = $(filter tests/unit/%,$(TESTS))
check-unit: all
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(check_unit)' check_PROGRAMS='$(filter-out %.py,$(check_unit))' check_LTLIBRARIES=
.PHONY: check-unit

# Mutation testing, which is run by hand: see its README.md.
EXTRA_DIST += tests/mutation/README.md tests/mutation/run tests/mutation/samples.txt
