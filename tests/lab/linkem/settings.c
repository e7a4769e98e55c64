/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settings.c - the settings of a direction, from text
 */
#include "config.h"

#include "linkem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum setting_type { TYPE_TIME, TYPE_RATE, TYPE_SHARE, TYPE_PACKETS, TYPE_NUMBER, TYPE_BOOL, TYPE_COUNT };

struct setting {
	struct setting_info info;
	enum setting_type type;
	size_t offset;
};

#define AT(field) offsetof(struct settings, field)

static const struct setting table[] = {
	{ { "delay", "TIME", "one-way delay, such as 10ms or 250us" }, TYPE_TIME, AT(delay_ns) },
	{ { "jitter", "TIME", "up to this much more delay, uniformly distributed" }, TYPE_TIME, AT(jitter_ns) },
	{ { "rate", "RATE", "bits a second, counted from the IP header on: 50mbit, 1.5gbit; none" }, TYPE_RATE, AT(rate_bps) },
	{ { "queue", "PACKETS", "packets that may wait where there is a rate; later ones are dropped" }, TYPE_PACKETS, AT(queue) },
	{ { "loss", "SHARE", "share of packets lost at random, such as 1%" }, TYPE_SHARE, AT(loss_ppb) },
	{ { "reorder", NULL, "let jitter change the order of packets" }, TYPE_BOOL, AT(reorder) },
	{ { "strip-mptcp", NULL, "overwrite MPTCP options by NOPs" }, TYPE_BOOL, AT(strip_mptcp) },
	{ { "strip-mptcp-behind", NULL, "the same, but not of SYNs" }, TYPE_BOOL, AT(strip_mptcp_behind) },
	{ { "strip-syn-data", NULL, "cut the payload off SYNs" }, TYPE_BOOL, AT(strip_syn_data) },
	{ { "max-size", "BYTES", "drop larger packets, counted from the IP header on; 0: none" }, TYPE_NUMBER, AT(max_size) },
	{ { "max-syn", "BYTES", "drop larger packets with the SYN flag; 0: none" }, TYPE_NUMBER, AT(max_syn) },
	{ { "drop-mptcp-syn", NULL, "drop SYNs with an MPTCP option" }, TYPE_BOOL, AT(drop_mptcp_syn) },
	{ { "drop-join", NULL, "drop SYNs that join an MPTCP connection" }, TYPE_BOOL, AT(drop_join) },
	{ { "drop-port", "PORT", "drop TCP to this port; 0: none" }, TYPE_NUMBER, AT(drop_port) },
};

#define SETTING_COUNT (sizeof table / sizeof *table)

/* A unit and its value in the setting's own. */
struct unit {
	const char *name;
	double factor;
};

static const struct unit time_units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { NULL, 0 } };
static const struct unit rate_units[] = { { "kbit", 1e3 }, { "mbit", 1e6 }, { "gbit", 1e9 }, { NULL, 0 } };
static const struct unit share_units[] = { { "%", 1e7 }, { NULL, 0 } };
static const struct unit packet_units[] = { { "", 1 }, { NULL, 0 } };

static const struct {
	const struct unit *units;
	double most;
	const char *expected;
} types[TYPE_COUNT] = {
	[TYPE_TIME] = { time_units, 60e9, "a time up to 60s, such as 10ms (ns, us, ms, s)" },
	[TYPE_RATE] = { rate_units, 1e12, "a rate, such as 50mbit (kbit, mbit, gbit), or none" },
	[TYPE_SHARE] = { share_units, 1e9, "a share, such as 1%" },
	[TYPE_PACKETS] = { packet_units, 16384, "a number of packets up to 16384" },
	[TYPE_NUMBER] = { packet_units, 65535, "a number up to 65535" },
	[TYPE_BOOL] = { NULL, 1, "on or off" },
};

const struct setting_info *settings_info(size_t *count)
{
	static struct setting_info infos[SETTING_COUNT];

	for (size_t i = 0; i < SETTING_COUNT; i++)
		infos[i] = table[i].info;
	*count = SETTING_COUNT;
	return infos;
}

void settings_init(struct settings *settings)
{
	*settings = (struct settings){ .queue = 1000 };
}

/* Reads a number with one of the type's units. */
static bool quantity_parse(enum setting_type type, const char *text, uint64_t *value)
{
	char *end;
	double number;

	/* strtod would take blanks, signs, "inf" and "nan" too */
	if (text[0] < '0' || text[0] > '9')
		return false;
	number = strtod(text, &end);
	for (const struct unit *unit = types[type].units; unit->name; unit++) {
		if (strcmp(end, unit->name) != 0)
			continue;
		number = number * unit->factor + 0.5;
		if (number >= types[type].most + 1)
			return false;
		*value = (uint64_t)number;
		return true;
	}
	return false;
}

static bool value_parse(const struct setting *setting, const char *text, void *field)
{
	bool on = strcmp(text, "on") == 0;

	if (setting->type == TYPE_BOOL) {
		if (!on && strcmp(text, "off") != 0)
			return false;
		*(bool *)field = on;
		return true;
	}
	if (setting->type == TYPE_RATE && strcmp(text, "none") == 0) {
		*(uint64_t *)field = 0;
		return true;
	}
	return quantity_parse(setting->type, text, field);
}

bool settings_set(struct settings *settings, const char *name, const char *value, char *error, size_t size)
{
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		if (strcmp(table[i].info.name, name) != 0)
			continue;
		if (value_parse(&table[i], value, (char *)settings + table[i].offset))
			return true;
		snprintf(error, size, "%s: \"%s\" is not %s", name, value, types[table[i].type].expected);
		return false;
	}
	snprintf(error, size, "\"%s\" is not a setting; see linkem --help", name);
	return false;
}

bool settings_parse_time(const char *text, uint64_t *ns, char *error, size_t size)
{
	if (quantity_parse(TYPE_TIME, text, ns))
		return true;
	snprintf(error, size, "\"%.100s\" is not %s", text, types[TYPE_TIME].expected);
	return false;
}

bool settings_set_list(struct settings *settings, const char *list, char *error, size_t size)
{
	struct settings changed = *settings;
	char copy[512], *save = NULL;

	if (strlen(list) >= sizeof copy) {
		snprintf(error, size, "the list of settings is longer than %zu bytes", sizeof copy - 1);
		return false;
	}
	strcpy(copy, list);
	for (char *name = strtok_r(copy, " \t=,", &save); name; name = strtok_r(NULL, " \t=,", &save)) {
		char *value = strtok_r(NULL, " \t=,", &save);

		if (!value) {
			snprintf(error, size, "\"%s\" has no value", name);
			return false;
		}
		if (!settings_set(&changed, name, value, error, size))
			return false;
	}
	*settings = changed;
	return true;
}
