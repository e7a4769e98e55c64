/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_host.c - library, doctor and service agree on what each of a table of hosts may use
 *
 * A host is lists of devices, addresses and routes. For each, and each word that somebody may say, all three judge all networks: the library
 * by the rules that run in hooks, the doctor and the service by host_networks_find().
 */
#include "config.h"

#include "host/lookup.h"
#include "paths_world.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct path_preferences none;
static struct path_preferences wishes;

/* --- hosts --- */

static void tunnel(const char *name, const char *kind, const char *address)
{
	add_link(name, kind);
	add_address(name, address);
}

static void host_without_vpn(void)
{
	two_networks();
}

static void host_with_bridge_and_container(void)
{
	two_networks();
	add_link("docker0", "bridge");
	add_address("docker0", "172.17.0.1");
	add_route("docker0", AF_INET, "172.17.0.0/16", NULL, 0);
}

static void container(void)
{
	add_network("eth0", "veth", "192.0.2", 0);
	add_network("eth1", "veth", "198.51.100", 10);
}

static void vpn_by_halves(void)
{
	two_networks();
	tunnel("tun0", "tun", "10.8.0.2");
	add_route("tun0", AF_INET, "0.0.0.0/1", NULL, 0);
	add_route("tun0", AF_INET, "128.0.0.0/1", NULL, 0);
}

static void vpn_of_lower_metric(void)
{
	two_networks();
	tunnel("tun0", "tun", "10.8.0.2");
	add_route("tun0", AF_INET, NULL, NULL, 50);
}

static void vpn_of_higher_metric(void)
{
	two_networks();
	tunnel("tun0", "tun", "10.8.0.2");
	add_route("tun0", AF_INET, NULL, NULL, 5000);
}

static void vpn_of_wg_quick(void)
{
	two_networks();
	tunnel("wg0", "wireguard", "10.8.0.2");
	add_route("wg0", AF_INET, NULL, NULL, 0)->table = 51820;
}

static void vpn_without_private_networks(void)
{
	two_networks();
	tunnel("wg0", "wireguard", "10.8.0.2");
	add_route("wg0", AF_INET, "0.0.0.0/5", NULL, 0);
	add_route("wg0", AF_INET, "128.0.0.0/3", NULL, 0);
	add_route("wg0", AF_INET, "192.128.0.0/11", NULL, 0);
	add_route("wg0", AF_INET, "200.0.0.0/5", NULL, 0);
	add_route("wg0", AF_INET, "192.172.0.0/14", NULL, 0);
}

static void vpn_of_one_family(void)
{
	vpn_by_halves();
	add_address("wlan0", "2001:db8:1::2");
	add_route("wlan0", AF_INET6, NULL, "2001:db8:1::1", 600);
	add_address("wwan0", "2001:db8:2::2");
	add_route("wwan0", AF_INET6, NULL, "2001:db8:2::1", 700);
}

static void vpn_to_the_converter(void)
{
	two_networks();
	tunnel("tun0", "tun", "10.8.0.2");
	add_route("tun0", AF_INET, "203.0.113.0/24", NULL, 0);
}

static void vpn_but_for_the_converter(void)
{
	vpn_by_halves();
	add_route("wlan0", AF_INET, "203.0.113.0/24", "192.0.2.1", 0);
}

static void vpn_elsewhere(void)
{
	two_networks();
	tunnel("tun0", "tun", "10.8.0.2");
	add_route("tun0", AF_INET, "10.0.0.0/8", NULL, 0);
}

static void vpn_that_is_down(void)
{
	vpn_by_halves();
	link_called("tun0")->up = false;
}

static void network_manager(void)
{
	two_networks();
	host.managers.nm_count = 2;
	host.managers.nm[0] = (struct host_nm_device){ .name = "wlan0", .metered = HOST_METERED_YES };
	host.managers.nm[1] = (struct host_nm_device){ .name = "wwan0", .disabled = true };
}

/* @used: what a connection to the converter may use with nobody's word */
static const struct {
	const char *name;
	void (*make)(void);
	const char *used;
} hosts[] = {
	{ "without a VPN", host_without_vpn, "wlan0 wwan0" },
	{ "bridge and container", host_with_bridge_and_container, "wlan0 wwan0" },
	{ "container", container, "eth0 eth1" },
	{ "VPN by halves", vpn_by_halves, "" },
	{ "VPN of lower metric", vpn_of_lower_metric, "" },
	{ "VPN of higher metric", vpn_of_higher_metric, "wlan0 wwan0" },
	{ "VPN of wg-quick", vpn_of_wg_quick, "" },
	{ "VPN without private networks", vpn_without_private_networks, "" },
	{ "VPN of one family", vpn_of_one_family, "" },
	{ "VPN to the converter", vpn_to_the_converter, "" },
	{ "VPN but for the converter", vpn_but_for_the_converter, "wlan0" },
	{ "VPN elsewhere", vpn_elsewhere, "wlan0 wwan0" },
	{ "VPN that is down", vpn_that_is_down, "wlan0 wwan0" },
	{ "NetworkManager", network_manager, "wlan0" },
};

/* --- the three --- */

/* What the library does with a network that leads to the converter: networks_to() and path_list.c, without the kernel. */
static bool library_uses(const struct host_network *network, const struct host_word *word)
{
	const struct host_link *vpn = host_vpn_among(host.links, host.link_count, host.ways, word);
	const struct in6_addr address = sockaddr_ip_in6(&network->address);
	const struct host_nm_device *nm = host_nm_of(&host.managers, network->link.name);
	uint8_t preference;

	/* NetworkManager's word reaches it as the flags of an endpoint */
	if (nm && nm->disabled)
		return false;
	return network->has_route && host_may_leave(vpn, network->link.index, host.ways[HOST_WAY_CONVERTER]) &&
	       host_word_of(word, NULL, network->link.name, &address, &preference) != PATH_USE_NEVER;
}

static bool is_kind_of_service(const char *kind)
{
	return !*kind || strcmp(kind, "wwan") == 0 || strcmp(kind, "bridge") == 0;
}

static void compare(const char *name, const struct host_word *word)
{
	struct host_word doctors = *word;
	struct host_network *doctor, *service;
	size_t count;

	doctors.any_kind = true;
	count = host_networks_find(&doctor, &host, &doctors);
	ck_assert_uint_eq(host_networks_find(&service, &host, word), count);
	for (size_t i = 0; i < count; i++) {
		const char *device = doctor[i].link.name;
		const bool library = library_uses(&doctor[i], &doctors);

		if (host_kind_is_vpn(doctor[i].link.kind)) {
			ck_assert_msg((doctor[i].verdict != HOST_USED || word->beside_vpn) && service[i].verdict != HOST_USED, "%s: %s", name, device);
			continue;
		}
		ck_assert_msg((doctor[i].verdict == HOST_USED) == library, "%s: %s: the doctor says %s, the library %d", name, device,
			      host_verdict_name(doctor[i].verdict), library);
		if (is_kind_of_service(doctor[i].link.kind))
			ck_assert_msg(service[i].verdict == doctor[i].verdict, "%s: %s: the service says %s, the doctor %s", name, device,
				      host_verdict_name(service[i].verdict), host_verdict_name(doctor[i].verdict));
		else
			ck_assert_msg(service[i].verdict != HOST_USED, "%s: %s", name, device);
	}
	free(doctor);
	free(service);
}

static void make(size_t i)
{
	union sockaddr_ip converter = address_of("203.0.113.7");

	begin();
	hosts[i].make();
	find_ways(&converter);
}

START_TEST(test_all_agree)
{
	const struct host_word words[] = {
		{ .paths = &none },
		{ .paths = &none, .beside_vpn = true },
		{ .paths = &none, .never = "wlan*" },
		{ .paths = &none, .backup = "wwan0" },
		{ .paths = &wishes },
		{ .paths = &wishes, .beside_vpn = true, .never = "eth1" },
	};

	wishes.count = 0;
	ck_assert_ptr_null(path_preferences_add(&wishes, "wwan0=never"));
	ck_assert_ptr_null(path_preferences_add(&wishes, "wlan0=backup"));
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		for (size_t j = 0; j < sizeof(words) / sizeof(words[0]); j++) {
			make(i);
			compare(hosts[i].name, &words[j]);
		}
}
END_TEST

/* One network with an address in each state: the library begins connections there if the doctor and the service use it. */
START_TEST(test_all_agree_about_addresses)
{
	static const struct {
		const char *address;
		uint8_t scope;
		uint32_t flags;
		enum host_verdict verdict;
	} cases[] = {
		{ "192.0.2.7", RT_SCOPE_UNIVERSE, 0, HOST_USED },
		{ "192.0.2.7", RT_SCOPE_UNIVERSE, IFA_F_PERMANENT, HOST_USED },
		{ "192.0.2.7", RT_SCOPE_SITE, 0, HOST_USED },
		{ "2001:db8::7", RT_SCOPE_UNIVERSE, IFA_F_TEMPORARY, HOST_USED },
		{ "2001:db8::7", RT_SCOPE_UNIVERSE, IFA_F_TENTATIVE, HOST_NOT_READY },
		{ "2001:db8::7", RT_SCOPE_UNIVERSE, IFA_F_TENTATIVE | IFA_F_OPTIMISTIC, HOST_USED },
		{ "2001:db8::7", RT_SCOPE_UNIVERSE, IFA_F_OPTIMISTIC, HOST_USED },
		{ "2001:db8::7", RT_SCOPE_UNIVERSE, IFA_F_DADFAILED, HOST_NOT_READY },
		{ "2001:db8::7", RT_SCOPE_UNIVERSE, IFA_F_TENTATIVE | IFA_F_OPTIMISTIC | IFA_F_DADFAILED, HOST_NOT_READY },
		{ "2001:db8::7", RT_SCOPE_UNIVERSE, IFA_F_DEPRECATED, HOST_DEPRECATED },
		{ "169.254.1.7", RT_SCOPE_UNIVERSE, 0, HOST_VERDICT_COUNT }, /* no network at all */
		{ "fe80::7", RT_SCOPE_LINK, 0, HOST_VERDICT_COUNT },
	};
	const struct host_word word = { .any_kind = true };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const union sockaddr_ip address = address_of(cases[i].address);
		const struct local_address local = { .address = sockaddr_ip_in6(&address), .flags = cases[i].flags, .scope = cases[i].scope };
		struct host_network *networks;
		struct host_address *added;
		enum host_verdict verdict;

		begin();
		add_link("wlan0", "");
		added = add_address("wlan0", cases[i].address);
		added->scope = cases[i].scope;
		added->flags = cases[i].flags;
		add_route("wlan0", address.sa.sa_family, sockaddr_ip_is_v4(&address) ? "0.0.0.0/0" : "::/0",
			  sockaddr_ip_is_v4(&address) ? "192.0.2.1" : "2001:db8::1", 0);
		verdict = host_networks_find(&networks, &host, &word) ? networks[0].verdict : HOST_VERDICT_COUNT;
		free(networks);
		ck_assert_msg(verdict == cases[i].verdict, "case %zu: the doctor says %s", i,
			      verdict == HOST_VERDICT_COUNT ? "no network" : host_verdict_name(verdict));
		ck_assert_msg(host_address_is_usable(&local) == (verdict == HOST_USED), "case %zu: the library", i);
	}
}
END_TEST

START_TEST(test_what_is_used)
{
	const struct host_word word = { .any_kind = true };

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		struct host_network *networks;
		char used[256] = "";
		size_t count;

		make(i);
		count = host_networks_find(&networks, &host, &word);
		for (size_t j = 0; j < count; j++)
			if (networks[j].verdict == HOST_USED) {
				strcat(used, *used ? " " : "");
				strcat(used, networks[j].link.name);
			}
		ck_assert_msg(strcmp(used, hosts[i].used) == 0, "%s: \"%s\" is used, and not \"%s\"", hosts[i].name, used, hosts[i].used);
		free(networks);
	}
}
END_TEST

/* The strictest word counts, whoever has said it. */
START_TEST(test_word)
{
	const struct host_nm_device metered = { .metered = HOST_METERED_YES }, disabled = { .disabled = true };
	const struct in6_addr address = { .s6_addr = { [10] = 0xff, 0xff, 192, 0, 2, 2 } };
	struct host_word word = { .paths = &wishes };
	uint8_t preference;

	wishes.count = 0;
	ck_assert_ptr_null(path_preferences_add(&wishes, "wwan0=never"));
	ck_assert_ptr_null(path_preferences_add(&wishes, "192.0.2.2"));
	ck_assert_int_eq(host_word_of(&word, NULL, "wlan0", &address, &preference), PATH_USE_ORDERED);
	ck_assert_uint_eq(preference, 1);
	ck_assert_int_eq(host_word_of(&word, NULL, "wwan0", &in6addr_any, &preference), PATH_USE_NEVER);
	ck_assert_int_eq(host_word_of(&word, &metered, "wlan0", &address, &preference), PATH_USE_BACKUP);
	ck_assert_int_eq(host_word_of(&word, &disabled, "wlan0", &address, &preference), PATH_USE_NEVER);
	word.backup = "eth*, wlan0, wwan0";
	ck_assert_int_eq(host_word_of(&word, NULL, "wlan0", &address, &preference), PATH_USE_BACKUP);
	ck_assert_int_eq(host_word_of(&word, NULL, "wwan0", &in6addr_any, &preference), PATH_USE_NEVER);
	word.never = "wlan?";
	ck_assert_int_eq(host_word_of(&word, NULL, "wlan0", &address, &preference), PATH_USE_NEVER);
	word = (struct host_word){ .paths = NULL };
	ck_assert_int_eq(host_word_of(&word, NULL, "wwan0", &in6addr_any, &preference), PATH_USE_ORDERED);
	ck_assert_uint_eq(preference, PATH_PREFERENCE_NONE);
}
END_TEST

/* A pattern too long for any device's name is none of it, and doesn't hide the next one. */
START_TEST(test_long_patterns_name_nothing)
{
	char list[128];

	for (int len = 62; len <= 66; len++) {
		memset(list, '*', (size_t)len);
		strcpy(list + len, ",eth0");
		ck_assert_int_eq(host_word_names(list, "wlan0"), len < 64);
		ck_assert(host_word_names(list, "eth0"));
	}
	ck_assert(!host_word_names(NULL, "eth0"));
	ck_assert(!host_word_names("", "eth0"));
	ck_assert(!host_word_names("eth00 xeth0,", "eth0"));
	ck_assert(host_word_names(" ,  wlan0 eth0", "eth0"));
}
END_TEST

static char missing[256];

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	const size_t used = strlen(missing);
	va_list args;

	va_start(args, format);
	vsnprintf(missing + used, sizeof(missing) - used, format, args);
	va_end(args);
	strcat(missing, "\n");
}

/* What is named and isn't there is told, in the order in which it was named; the loopback addresses and device are there. */
START_TEST(test_missing_networks_are_told)
{
	const char *const there[] = { "127.0.0.1", "lo" }, *const gone[] = { "203.0.113.77", "nosuch0", "2001:db8::77" };
	struct path_preferences named = { .count = 0 };

	for (size_t i = 0; i < 3; i++) {
		ck_assert_ptr_null(path_preferences_add(&named, gone[i]));
		if (i < 2)
			ck_assert_ptr_null(path_preferences_add(&named, there[i]));
	}
	for (size_t i = 0; i < 2; i++) { /* whatever failed before; and no descriptor is left open */
		const int before = i ? EADDRNOTAVAIL : ENODEV, lowest = dup(STDIN_FILENO);

		close(lowest);
		errno = before;
		missing[0] = '\0';
		networks_tell_missing(&named, say);
		ck_assert_int_eq(errno, before);
		ck_assert_int_eq(dup(STDIN_FILENO), lowest);
		close(lowest);
		ck_assert_str_eq(missing, "CONVERT_PATHS names 203.0.113.77: there is no such device or address now\n"
					  "CONVERT_PATHS names nosuch0: there is no such device or address now\n"
					  "CONVERT_PATHS names 2001:db8::77: there is no such device or address now\n");
	}
}
END_TEST

/* What the doctor prints, and what the service's state has: no two are the same, and none is empty. */
START_TEST(test_each_verdict_has_a_name_and_a_reason)
{
	for (int i = 0; i < HOST_VERDICT_COUNT; i++) {
		const char *name = host_verdict_name((enum host_verdict)i), *text = host_verdict_text((enum host_verdict)i);

		ck_assert_ptr_nonnull(name);
		ck_assert_ptr_nonnull(text);
		ck_assert_uint_ge(strlen(name), 2);
		ck_assert_ptr_null(strchr(name, ' '));
		ck_assert_ptr_nonnull(strchr(text, ' '));
		for (int j = 0; j < i; j++) {
			ck_assert_str_ne(name, host_verdict_name((enum host_verdict)j));
			ck_assert_str_ne(text, host_verdict_text((enum host_verdict)j));
		}
	}
}
END_TEST

/* Of several default routes over a device the one with the least metric says how it is preferred. */
START_TEST(test_least_metric_is_the_devices)
{
	const union sockaddr_ip router = address_of("192.0.2.7");

	add_network("eth0", "", "192.0.2", 300);
	add_route("eth0", AF_INET, NULL, "192.0.2.7", 100);
	add_route("eth0", AF_INET, NULL, "192.0.2.8", 200);
	look();
	ck_assert_uint_eq(wanted.count, 1);
	ck_assert_uint_eq(wanted.networks[0].metric, 100);
	ck_assert(sockaddr_ip_equal(&wanted.networks[0].gateway, &router));
}
END_TEST

/* Whichever is listed first. */
START_TEST(test_address_of_two_devices_is_left_to_the_one_with_a_carrier)
{
	for (int i = 0; i < 2; i++) {
		begin();
		add_network("eth0", "", "192.0.2", i ? 10 : 100);
		add_network("eth1", "", "192.0.2", i ? 100 : 10);
		link_called("eth0")->carrier = !i;
		link_called("eth1")->carrier = i;
		look();
		ck_assert_int_eq(verdict_of("eth0", "192.0.2.2"), i ? HOST_TWICE : HOST_USED);
		ck_assert_int_eq(verdict_of("eth1", "192.0.2.2"), i ? HOST_USED : HOST_TWICE);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("host");
	TCase *tcase = tcase_create("host");

	tcase_add_checked_fixture(tcase, begin, NULL);
	tcase_add_test(tcase, test_all_agree);
	tcase_add_test(tcase, test_all_agree_about_addresses);
	tcase_add_test(tcase, test_what_is_used);
	tcase_add_test(tcase, test_word);
	tcase_add_test(tcase, test_long_patterns_name_nothing);
	tcase_add_test(tcase, test_missing_networks_are_told);
	tcase_add_test(tcase, test_each_verdict_has_a_name_and_a_reason);
	tcase_add_test(tcase, test_least_metric_is_the_devices);
	tcase_add_test(tcase, test_address_of_two_devices_is_left_to_the_one_with_a_carrier);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
