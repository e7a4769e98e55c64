/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_lookup.h - host/networks.c asks the test in place of the kernel; read before each file (-include) */
#ifndef FAKE_LOOKUP_TESTS_H
#define FAKE_LOOKUP_TESTS_H

#define host_way_ask fake_host_way_ask
#define host_ways_ask fake_host_ways_ask
#define host_link_ask fake_host_link_ask
#define host_device_name fake_host_device_name
#define addresses_visit fake_addresses_visit
#define service_rules_visit fake_service_rules_visit
#define endpoints_visit fake_endpoints_visit

#endif
