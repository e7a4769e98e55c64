/* SPDX-License-Identifier: BSD-3-Clause */
/* test_gateway_settings.c - convertgw's command line and file: which settings are valid, and the messages about others */
#include "config.h"

#include "daemon/log.h"
#include "gateway/gateway_settings.h"

#include "run.h"

#include <arpa/inet.h>
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define WORDS_MAX 24

static char path[] = "/tmp/test_gateway_settings.XXXXXX";

static void make_file(const char *text)
{
	int fd;

	strcpy(path + strlen(path) - 6, "XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

/* Reads a command line of @line's words, which a bar separates, with --config if there is a @text for the file. */
static struct gateway_settings *create(const char *line, const char *text, struct problems *problems)
{
	char copy[2048], *rest = copy, *argv[WORDS_MAX] = { (char *)"convertgw" };
	struct gateway_settings *settings;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok_r(copy, "|", &rest); word; word = strtok_r(NULL, "|", &rest))
		argv[argc++] = word;
	if (text) {
		make_file(text);
		argv[argc++] = (char *)"--config";
		argv[argc++] = path;
	}
	settings = gateway_settings_read(argc, argv, problems);
	if (text)
		unlink(path);
	return settings;
}

static struct gateway_settings *create_right(const char *line, const char *text)
{
	struct problems problems = { 0 };
	struct gateway_settings *settings = create(line, text, &problems);

	ck_assert_msg(settings && !problems.count, "%s", problems.first);
	return settings;
}

#define LEAST "--lan|br0|--converter|192.0.2.1"

/* The numbers: preset, and as test each_option sets them. */
#define NUMBER(member, preset, set) { #member, offsetof(struct gateway_settings, member), preset, set }

static const struct {
	const char *name;
	size_t offset;
	unsigned preset, set;
} numbers[] = {
	NUMBER(table, 8803, 20),
	NUMBER(first_queue, 8803, 21),
	NUMBER(port, 8803, 22),
	NUMBER(workers, 0, 3),
	NUMBER(connect_timeout, 130, 15),
	NUMBER(stall_timeout, 900, 16),
	NUMBER(half_close_timeout, 7200, 17),
	NUMBER(idle_timeout, 0, 18),
	NUMBER(drain_timeout, 30, 19),
	NUMBER(limits.pending.total, 4096, 13),
	NUMBER(limits.pending.per_client, 256, 14),
	NUMBER(limits.prefix_v6, 128, 64),
	NUMBER(log_level, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG),
};

static void check_numbers(const struct gateway_settings *settings, bool set)
{
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		const unsigned *found = (const unsigned *)((const char *)settings + numbers[i].offset);

		ck_assert_msg(*found == (set ? numbers[i].set : numbers[i].preset), "%s is %u", numbers[i].name, *found);
	}
}

START_TEST(defaults)
{
	struct gateway_settings *settings = create_right(LEAST, NULL);

	ck_assert_int_eq(settings->action, GATEWAY_RUN);
	ck_assert_uint_eq(settings->lan_count, 1);
	ck_assert_str_eq(settings->lan[0], "br0");
	ck_assert(!settings->host && !settings->refuse_quic && !settings->rule_count && !settings->metrics_count);
	ck_assert_uint_eq(settings->mark, GATEWAY_MARK_DEFAULT);
	ck_assert_uint_eq(gateway_divert_mark(settings), 0x04000000);
	ck_assert_uint_eq(gateway_own_mark(settings), 0x08000000);
	ck_assert(settings->client.enabled);
	ck_assert(!settings->client.bypass_mptcp);
	ck_assert_int_eq(settings->client.timeout_ms, 3000);
	ck_assert_str_eq(settings->client.cache, "/run/convertgw");
	ck_assert_uint_eq(settings->client.cookie_len, 0);
	check_numbers(settings, false);
	gateway_settings_free(settings);
}
END_TEST

/* Every option, on the command line and in a file. */
START_TEST(each_option)
{
	static const char line[] =
		"--lan|br0|--lan=docker0|--host|--refuse-quic|--converter|192.0.2.1|--converter|gate.example:443|--cookie|abc|--paths|wwan0,eth0=backup|"
		"--cache|/var/lib/x|--mark|0x30";
	static const char text[] = "converter-timeout 0.5\nmax-connections 11\nmax-connections-per-client 12\nmax-pending 13\n"
				   "max-pending-per-client 14\nclient-prefix-v4 24\nclient-prefix-v6 64\nconnect-timeout 15\nstall-timeout 16\n"
				   "half-close-timeout 17\nidle-timeout 18\ndrain-timeout 19\ntable 20\nqueue 21\nport 22\nworkers 3\n"
				   "log-level debug\nlog-format json\nlog-rate 23\nmetrics 127.0.0.1:9103\nmetrics unix:/run/x.sock\n";
	struct gateway_settings *settings = create_right(line, text);
	const struct settings *client = &settings->client;

	ck_assert_uint_eq(settings->lan_count, 2);
	ck_assert_str_eq(settings->lan[1], "docker0");
	ck_assert(settings->host && settings->refuse_quic);
	ck_assert_uint_eq(client->converter_count, 2);
	ck_assert_uint_eq(client->converters[0].port, SETTINGS_PORT_DEFAULT);
	ck_assert_str_eq(client->converters[1].name, "gate.example");
	ck_assert_uint_eq(client->converters[1].port, 443);
	ck_assert_uint_eq(client->cookie_len, 3);
	ck_assert_uint_eq(client->paths.count, 2);
	ck_assert_int_eq(client->paths.wishes[1].use, PATH_USE_BACKUP);
	ck_assert_str_eq(client->cache, "/var/lib/x");
	ck_assert_int_eq(client->timeout_ms, 500);
	ck_assert_uint_eq(gateway_divert_mark(settings), 0x10);
	ck_assert_uint_eq(gateway_own_mark(settings), 0x20);
	ck_assert_uint_eq(settings->limits.connections.total, 11);
	ck_assert_uint_eq(settings->limits.connections.per_client, 12);
	ck_assert_uint_eq(settings->limits.prefix_v4, 24);
	ck_assert_uint_eq(settings->log_format, LOG_FORMAT_JSON);
	ck_assert_uint_eq(settings->log_rate, 23);
	ck_assert_uint_eq(settings->metrics_count, 2);
	check_numbers(settings, true);
	gateway_settings_free(settings);
}
END_TEST

/* The command line takes precedence; its lists and rules stand before those of the file. */
START_TEST(command_line_first)
{
	struct gateway_settings *settings = create_right(LEAST "|--port|1|--route|all|--cookie|line",
							 "port 2\nlan br1\nconverter 192.0.2.2\nconvert destination :80\ncookie file\n");

	ck_assert_uint_eq(settings->port, 1);
	ck_assert_uint_eq(settings->lan_count, 2);
	ck_assert_str_eq(settings->lan[1], "br1");
	ck_assert_uint_eq(settings->client.converter_count, 2);
	ck_assert_uint_eq(settings->rule_count, 2);
	ck_assert_int_eq(settings->rules[0].way, GATEWAY_ROUTE);
	ck_assert_int_eq(settings->rules[1].way, GATEWAY_CONVERT);
	ck_assert_mem_eq(settings->client.cookie, "line", 4);
	gateway_settings_free(settings);
}
END_TEST

/* The environment of convertgw has no say: it may be that of a preloaded program. */
START_TEST(environment_is_not_read)
{
	struct gateway_settings *settings;

	setenv("CONVERT_ADDR", "198.51.100.1", 1);
	setenv("CONVERT_COOKIE", "mine", 1);
	setenv("CONVERT_BYPASS", "0.0.0.0/0", 1);
	settings = create_right(LEAST, NULL);
	ck_assert_uint_eq(settings->client.converter_count, 1);
	ck_assert_uint_eq(settings->client.cookie_len, 0);
	ck_assert_uint_eq(settings->client.bypass_count, 0);
	gateway_settings_free(settings);
}
END_TEST

START_TEST(cookie_of_a_file)
{
	struct gateway_settings *settings;
	struct problems problems = { 0 };
	char line[256];

	make_file("secret\r\nsecond line\n");
	snprintf(line, sizeof(line), LEAST "|--cookie-file|%s", path);
	settings = create_right(line, NULL);
	ck_assert_uint_eq(settings->client.cookie_len, 6);
	ck_assert_mem_eq(settings->client.cookie, "secret", 6);
	gateway_settings_free(settings);
	strcat(line, "|--cookie|other");
	ck_assert_ptr_null(create(line, NULL, &problems));
	ck_assert_str_eq(problems.first, "--cookie-file: there is a cookie in the settings already; remove one of them");
	ck_assert_int_eq(chmod(path, 0644), 0);
	problems = (struct problems){ 0 };
	line[strlen(line) - strlen("|--cookie|other")] = '\0';
	ck_assert_ptr_null(create(line, NULL, &problems));
	ck_assert_msg(strstr(problems.first, "chmod 600"), "%s", problems.first);
	unlink(path);
}
END_TEST

/* ----- rules ----- */

START_TEST(a_rule_has_all_its_words)
{
	struct gateway_settings *settings =
		create_right(LEAST "|--require|client 192.168.2.0/24 destination 198.51.100.0/24:80-90 device br0.7 dscp 46 mark 0x10/0xf0", NULL);
	const struct gateway_rule *rule = &settings->rules[0];
	char text[PREFIX_STRLEN];

	ck_assert_int_eq(rule->way, GATEWAY_REQUIRE);
	ck_assert_str_eq(prefix_format(&rule->client, text), "192.168.2.0/24");
	ck_assert_str_eq(prefix_format(&rule->destination.prefix, text), "198.51.100.0/24");
	ck_assert_uint_eq(rule->destination.port_first, 80);
	ck_assert_uint_eq(rule->destination.port_last, 90);
	ck_assert_str_eq(rule->device, "br0.7");
	ck_assert(rule->has_dscp && rule->dscp == 46);
	ck_assert(rule->has_mark && rule->mark == 0x10 && rule->mark_mask == 0xf0);
	gateway_settings_free(settings);
}
END_TEST

START_TEST(a_rule_without_words_matches_all)
{
	struct gateway_settings *settings = create_right(LEAST "|--route|all|--convert|all device br0|--convert|mark 7", NULL);
	const struct gateway_rule *rule = &settings->rules[0];

	ck_assert_uint_eq(settings->rule_count, 3);
	ck_assert(!rule->client.length && !rule->destination.prefix.length && !rule->device[0] && !rule->has_dscp && !rule->has_mark);
	ck_assert_uint_eq(rule->destination.port_first, 0);
	ck_assert_uint_eq(rule->destination.port_last, UINT16_MAX);
	ck_assert_str_eq(settings->rules[1].device, "br0");
	ck_assert_uint_eq(settings->rules[2].mark_mask, UINT32_MAX);
	gateway_settings_free(settings);
}
END_TEST

/* ----- patterns of interfaces ----- */

static const struct {
	const char *device;
	bool is_lan;
} devices[] = {
	{ "br0", true }, { "br", false }, { "br01", false }, { "br*", true }, { "b*", true }, { "br1*", false },
	{ "cali", true }, { "cali7", true }, { "cal", false }, { "cali*", true }, { "cali7*", true }, { "xcali7", false }, { "", false },
};

START_TEST(interfaces_of_clients)
{
	struct gateway_settings *settings = create_right(LEAST "|--lan|cali*", NULL);

	ck_assert_int_eq(gateway_settings_have_lan(settings, devices[_i].device), devices[_i].is_lan);
	gateway_settings_free(settings);
}
END_TEST

/* ----- errors ----- */

static const struct {
	const char *line, *told; /* a part of the message; NULL: it is right */
} cases[] = {
	{ "--converter|192.0.2.1", "no clients; name the interface of the hosts behind this one with --lan, or write --host" },
	{ "--lan|br0", "no converter; name one with --converter" },
	{ "--host|--converter|_convert._tcp.example", NULL },
	{ "--host|--converter|[2001:db8::1]:443", NULL },
	{ "--host|--converter|192.0.2", "--converter: \"192.0.2\" is neither an address nor a name" },
	{ "--host|--converter|,", "--converter: is empty" },
	{ "--host|--converter=", "--converter: \"\" is empty" },
	{ "--host|--converter|_convert._tcp.example:1", "--converter: \"_convert._tcp.example:1\" is a service" },
	{ LEAST "|--lan|lo", "--lan: \"lo\" is this host itself; write --host" },
	{ LEAST "|--lan|a/b", "--lan: \"a/b\" can't be the name of an interface; see: ip link" },
	{ LEAST "|--lan|a\"b", "can't be the name of an interface" },
	{ LEAST "|--lan|sixteenbytes0123", "can't be the name of an interface" },
	{ LEAST "|--lan|..", "can't be the name of an interface" },
	{ LEAST "|--lan|cali*|--route|device cali*", NULL },
	{ LEAST "|--lan|*", "--lan: \"*\" can't be the name of an interface" },
	{ LEAST "|--lan|ca*li", "can't be the name of an interface" },
	{ LEAST "|--lan|cali**", "can't be the name of an interface" },
	{ LEAST "|--lan|l*", "--lan: \"l*\" is this host itself; write --host" },
	{ LEAST "|--route|device *", "has no right value behind \"device\"; write device br0" },
	{ LEAST "|--cookie=", "--cookie: \"\" has to have from 1 to 255 bytes" },
	{ LEAST "|--cookie-file|/nonexistent", "--cookie-file: \"/nonexistent\" can't be read" },
	{ LEAST "|--paths|eth0=first", "--paths: \"eth0=first\" has neither backup nor never after the =" },
	{ LEAST "|--converter-timeout|soon", "--converter-timeout: \"soon\" is not a time" },
	{ LEAST "|--cache|here", "--cache: \"here\" is neither an absolute path nor none" },
	{ LEAST "|--cache|none", NULL },
	{ LEAST "|--mark|1", "--mark: \"1\" isn't a number with exactly two bits set; write 0xc000000" },
	{ LEAST "|--mark|7", "exactly two bits" },
	{ LEAST "|--mark|0", "exactly two bits" },
	{ LEAST "|--mark|0x180000000", "exactly two bits" },
	{ LEAST "|--mark|-3", "exactly two bits" },
	{ LEAST "|--mark|3x", "exactly two bits" },
	{ LEAST "|--mark|0x80000001", NULL },
	{ LEAST "|--table|0", "--table: \"0\" is not a number from 1 to 4294967294" },
	{ LEAST "|--table|253", "--table: \"253\" is a table that the kernel uses itself" },
	{ LEAST "|--table|254", "a table that the kernel uses itself" },
	{ LEAST "|--table|255", "a table that the kernel uses itself" },
	{ LEAST "|--table|252", NULL },
	{ LEAST "|--table|256", NULL },
	{ LEAST "|--port|0", "--port: \"0\" is not a number from 1 to 65535" },
	{ LEAST "|--queue|65001", "--queue: \"65001\" is not a number from 0 to 65000" },
	{ LEAST "|--workers|65", "--workers: \"65\" is not a number from 0 to 64" },
	{ LEAST "|--client-prefix-v4|33", "bits from 0 to 32" },
	{ LEAST "|--log-level|loud", "is none of error, warning, info, debug" },
	{ LEAST "|--metrics|9103", "write 127.0.0.1:9103 or unix:/run/convertgw/metrics.sock" },
	{ LEAST "|--route", "\"--route\" needs a value" },
	{ LEAST "|--route| ", "--route: \" \" isn't a rule; write \"all\" if that is meant" },
	{ LEAST "|--route|10.0.0.0/8", "has an unknown word; write \"all\", or one or more of: client PREFIX" },
	{ LEAST "|--route|client", "has no right value behind \"client\"" },
	{ LEAST "|--route|client 10.0.0.1/8", "has no right value behind \"client\"" },
	{ LEAST "|--route|destination 2001:db8::/32:443", "has no right value behind \"destination\"" },
	{ LEAST "|--route|device a:b", "has no right value behind \"device\"; write device br0" },
	{ LEAST "|--route|dscp 64", "has no right value behind \"dscp\"; write dscp a number up to 63" },
	{ LEAST "|--route|mark 0x10/", "has no right value behind \"mark\"; write mark 0x10 or 0x10/0xff" },
	{ LEAST "|--route|mark 0x10/0xf", "has no right value behind \"mark\"" },
	{ LEAST "|--route|client 10.0.0.0/8 destination [2001:db8::/32]:443", "different address families: it can't match" },
	{ LEAST "|--route|client 10.0.0.0/8 destination :443", NULL },
	{ LEAST "|--nonsense", "\"--nonsense\" isn't an option, or it takes no value; see convertgw --help" },
	{ LEAST "|--lan", "\"--lan\" needs a value; see convertgw --help" },
	{ LEAST "|br1", "\"br1\" is not an option; interfaces go behind --lan" },
	{ LEAST "|--config|/nonexistent", "--config: \"/nonexistent\" can't be read" },
};

START_TEST(wrong_words_are_told)
{
	struct problems problems = { 0 };
	struct gateway_settings *settings = create(cases[_i].line, NULL, &problems);

	if (cases[_i].told)
		ck_assert_msg(!settings && strstr(problems.first, cases[_i].told), "%s: %s", cases[_i].line, problems.first);
	else
		ck_assert_msg(settings && !problems.count, "%s: %s", cases[_i].line, problems.first);
	gateway_settings_free(settings);
}
END_TEST

START_TEST(lists_end)
{
	struct gateway_settings *settings;
	struct problems problems = { 0 };
	char text[2048] = "";

	for (int i = 0; i < GATEWAY_INTERFACES_MAX; i++)
		sprintf(text + strlen(text), "lan br%d\n", i);
	settings = create_right("--converter|192.0.2.1", text);
	ck_assert_uint_eq(settings->lan_count, GATEWAY_INTERFACES_MAX);
	gateway_settings_free(settings);
	ck_assert_ptr_null(create(LEAST, text, &problems));
	ck_assert_msg(strstr(problems.first, "lan: \"br31\" is one too many, the limit is 32"), "%s", problems.first);
	problems = (struct problems){ 0 };
	ck_assert_ptr_null(create("--host|--converter|a.x,b.x,c.x,d.x,e.x,f.x,g.x,h.x|--converter|i.x", NULL, &problems));
	ck_assert_str_eq(problems.first, "--converter: more than 8 converters; remove \"i.x\"");
}
END_TEST

/* Each error has its line of the file; options that only the command line has are refused there. */
START_TEST(errors_of_a_file)
{
	struct problems problems = { 0 };
	const char *at;

	ck_assert_ptr_null(create(LEAST, "# the LAN\nlan br0\nhost yes\ncheck-config\nport 1\nport 2\n", &problems));
	ck_assert_uint_eq(problems.count, 3);
	at = strchr(problems.first, ':');
	ck_assert_msg(at && strcmp(at, ":3: host: \"yes\": it takes no value; write \"host\" alone, or leave it out") == 0, "%s", problems.first);
}
END_TEST

START_TEST(actions)
{
	struct gateway_settings *settings = create_right("--help|nonsense", NULL);

	ck_assert_int_eq(settings->action, GATEWAY_HELP);
	gateway_settings_free(settings);
	settings = create_right("--version", NULL);
	ck_assert_int_eq(settings->action, GATEWAY_VERSION);
	gateway_settings_free(settings);
	settings = create_right("status", "metrics 127.0.0.1:9103\n");
	ck_assert_int_eq(settings->action, GATEWAY_STATUS);
	ck_assert_uint_eq(settings->metrics_count, 1);
	gateway_settings_free(settings);
	settings = create_right(LEAST "|--check-config", NULL);
	ck_assert_int_eq(settings->action, GATEWAY_CHECK);
	gateway_settings_free(settings);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("gateway_settings");
	TCase *tcase = tcase_create("gateway_settings");

	tcase_add_test(tcase, defaults);
	tcase_add_test(tcase, each_option);
	tcase_add_test(tcase, command_line_first);
	tcase_add_test(tcase, environment_is_not_read);
	tcase_add_test(tcase, cookie_of_a_file);
	tcase_add_test(tcase, a_rule_has_all_its_words);
	tcase_add_test(tcase, a_rule_without_words_matches_all);
	tcase_add_loop_test(tcase, interfaces_of_clients, 0, (int)ARRAY_SIZE(devices));
	tcase_add_loop_test(tcase, wrong_words_are_told, 0, (int)ARRAY_SIZE(cases));
	tcase_add_test(tcase, lists_end);
	tcase_add_test(tcase, errors_of_a_file);
	tcase_add_test(tcase, actions);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
