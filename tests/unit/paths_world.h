/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * paths_world.h - a host of links, addresses and routes, for the tests of the path manager's decisions
 *
 * The functions below build a host; tests compare the operations with the commands that they stand for. settle() applies them to the
 * host, as the kernel would: afterwards nothing is left to do.
 */
#ifndef PATHS_WORLD_TESTS_H
#define PATHS_WORLD_TESTS_H

#include "paths/plan.h"
#include "run.h"

#define ROOM 128

/* What the host's lists point to. */
struct paths_world_lists {
	struct host_link links[ROOM];
	struct host_address addresses[ROOM];
	struct host_route routes[ROOM];
	struct host_rule rules[ROOM];
	uint32_t tables[ROOM];
};

extern struct paths_world_lists lists;
extern struct host host;
extern struct paths_choice choice;
extern struct paths_memory memory;
extern struct paths_wanted wanted;
extern struct paths_operations operations;

/* A checked fixture: an empty host, of which nothing is remembered. */
void begin(void);

union sockaddr_ip address_of(const char *text);
struct host_link *link_called(const char *name);
struct host_link *add_link(const char *name, const char *kind);
struct host_address *add_address(const char *device, const char *address);
void remove_address(const char *address);

/* @to: a prefix; NULL: the default route. @gateway: NULL: none */
struct host_route *add_route(const char *device, int family, const char *to, const char *gateway, uint32_t metric);
void remove_routes_of(const char *device);

/* Adds a device with the address @number.2/24, and a default route by @number.1. */
void add_network(const char *device, const char *kind, const char *number, uint32_t metric);
void two_networks(void);
struct mptcp_endpoint *add_endpoint(const char *address, uint8_t id, const char *device);

/* Finds which paths this host should have, and the operations that make them. */
void look(void);

/* Looks, and does the operations; afterwards no operation may be left. */
void settle(void);

/* Returns the device by which the kernel sends a packet whose source doesn't matter, over any device or only over @index; 0: none. */
unsigned int find_way(const union sockaddr_ip *to, unsigned int index);

/* Finds the kernel's ways to anywhere, and to the converter unless that is NULL. wg-quick's table comes before the main one. */
void find_ways(const union sockaddr_ip *converter);

enum host_verdict verdict_of(const char *device, const char *address);

/* The commands for the rules of an address. @ip: "ip " or "ip -6 "; @verb: "add" or "del" */
#define RULES(ip, verb, address, table)                                                                                                     \
	ip "rule " verb " from " address " table " table " suppress_prefixlength 1 priority 8801 protocol 88",                              \
		ip "rule " verb " from " address " table 254 suppress_prefixlength 1 priority 8802 protocol 88",                            \
		ip "rule " verb " from " address " table " table " priority 8803 protocol 88"

/* Checks that the operations are these commands and no others, in this order. The list ends with NULL. */
#define expect(...) expect_commands((const char *const[]){ __VA_ARGS__, NULL })
#define expect_nothing() expect_commands((const char *const[]){ NULL })
void expect_commands(const char *const commands[]);

#endif
