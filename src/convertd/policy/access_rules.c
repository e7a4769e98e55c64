/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * access_rules.c - rules that allow or deny prefixes; the longest match wins
 *
 * The rules are sorted in the order in which they apply: long prefixes before short ones, and those of
 * one length by address. For each length, a binary search looks for the prefix of the address
 * with that length. There are at most 129 lengths, and seldom more than ten.
 */
#include "config.h"

#include "convertd/policy/access_rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int ports_width(const struct access_rule *rule)
{
	return rule->match.port_last - rule->match.port_first;
}

static int compare_prefixes(const struct prefix *a, const struct prefix *b)
{
	if (a->length != b->length)
		return b->length - a->length;
	return memcmp(&a->address, &b->address, sizeof(a->address));
}

/* Compares two rules for qsort(); the one that applies first is less. */
static int compare_rules(const void *x, const void *y)
{
	const struct access_rule *a = x, *b = y;
	int order = compare_prefixes(&a->match.prefix, &b->match.prefix);

	if (order)
		return order;
	if (a->builtin != b->builtin)
		return a->builtin - b->builtin;
	if (ports_width(a) != ports_width(b))
		return ports_width(a) - ports_width(b);
	return a->match.port_first - b->match.port_first;
}

int access_rules_add(struct access_rules *rules, const struct access_rule *rule)
{
	if (rules->count == rules->room) {
		size_t room = rules->room ? rules->room * 2 : 16;
		struct access_rule *more = realloc(rules->rule, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		rules->rule = more;
		rules->room = room;
	}
	rules->rule[rules->count++] = *rule;
	rules->closed |= rule->allow && !rule->builtin;
	return 0;
}

/* Tells whether two rules decide the same destination in opposite ways, and neither has precedence. */
static bool contradict(const struct access_rule *a, const struct access_rule *b)
{
	return a->allow != b->allow && a->builtin == b->builtin &&
	       ports_width(a) == ports_width(b) && a->match.port_first <= b->match.port_last &&
	       b->match.port_first <= a->match.port_last &&
	       compare_prefixes(&a->match.prefix, &b->match.prefix) == 0;
}

static void tell_contradiction(const struct access_rule *a, const struct access_rule *b,
			       struct problems *problems)
{
	char text[PREFIX_STRLEN];

	if (b->place.line < a->place.line) {
		const struct access_rule *later = a;

		a = b;
		b = later;
	}
	prefix_format(&b->match.prefix, text);
	if (a->place.line)
		problems_add(problems, &b->place,
			     "\"%s\" has a rule that says the opposite, in line %u; remove one", text,
			     a->place.line);
	else
		problems_add(problems, &b->place,
			     "\"%s\" has a rule that says the opposite, on the command line; remove one",
			     text);
}

void access_rules_finish(struct access_rules *rules, struct problems *problems)
{
	if (rules->count)
		qsort(rules->rule, rules->count, sizeof(*rules->rule), compare_rules);
	/* Rules that could contradict each other are neighbours, or only such rules are between them. */
	for (size_t i = 0; i + 1 < rules->count; i++)
		if (contradict(&rules->rule[i], &rules->rule[i + 1]))
			tell_contradiction(&rules->rule[i], &rules->rule[i + 1], problems);
}

/* Returns the index of the first of @count rules at @rule that doesn't sort before @prefix; @count if all do. */
static size_t first_not_before(const struct access_rule *rule, size_t count, const struct prefix *prefix)
{
	size_t low = 0;

	while (count) {
		size_t half = count / 2;

		if (compare_prefixes(&rule[low + half].match.prefix, prefix) < 0) {
			low += half + 1;
			count -= half + 1;
		} else {
			count = half;
		}
	}
	return low;
}

const struct access_rule *access_rules_find(const struct access_rules *rules, const struct in6_addr *address,
			      uint16_t port)
{
	const struct access_rule *rule = rules->rule, *end = rule + rules->count;

	while (rule < end) {
		uint8_t length = rule->match.prefix.length;
		struct prefix prefix = prefix_of(address, length), shorter = { 0 };

		rule += first_not_before(rule, (size_t)(end - rule), &prefix);
		for (; rule < end && compare_prefixes(&rule->match.prefix, &prefix) == 0; rule++)
			if (port >= rule->match.port_first && port <= rule->match.port_last)
				return rule;
		if (length == 0)
			break;
		/* Skips the other rules of this length. */
		shorter.length = (uint8_t)(length - 1);
		rule += first_not_before(rule, (size_t)(end - rule), &shorter);
	}
	return NULL;
}

bool access_rules_allow(const struct access_rules *rules, const struct in6_addr *address, uint16_t port)
{
	const struct access_rule *rule = access_rules_find(rules, address, port);

	return rule ? rule->allow : !rules->closed;
}

void access_rules_fini(struct access_rules *rules)
{
	free(rules->rule);
	memset(rules, 0, sizeof(*rules));
}
