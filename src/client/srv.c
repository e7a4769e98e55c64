/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * srv.c - converters that a domain announces by SRV records (Section 10.1, RFC 2782), without I/O
 *
 * The bytes come from a name server, or from an attacker who pretends to be one. We read names into a normal form (lower case, '?' for
 * bytes that no host's name has), so that strcmp() can compare them, and return only plain names. All repetition is bounded: compression
 * pointers lead backwards only, and a limited number of times; we follow a limited number of aliases.
 */
#include "config.h"

#include "client/resolve.h"

#include <errno.h>
#include <string.h>

#define SERVICE "_convert._tcp."

/* RFC 1035 4.1.1, 4.1.4 and 3.2.2; RFC 2782 */
#define HEADER_LEN 12
#define QUESTION_REST_LEN 4 /* type and class, behind the name */
#define RECORD_REST_LEN 10  /* type, class, TTL and the length of the data */
#define SRV_REST_LEN 6      /* priority, weight and port, in front of the target */
#define FLAG_RESPONSE 0x8000u
#define FLAG_TRUNCATED 0x0200u
#define RCODE_MASK 0x000fu
#define RCODE_NAME_ERROR 3
#define TYPE_CNAME 5
#define TYPE_SRV 33
#define CLASS_IN 1

#define LABEL_MAX 63
#define POINTERS_MAX 127 /* a name has no more labels, and each pointer stands for at least one */
#define ALIASES_MAX 8

struct message {
	const uint8_t *data;
	size_t len;
	size_t answers_at;     /* where the answers begin */
	unsigned int answers;  /* as the header counts them */
	bool truncated;
};

struct record {
	char owner[SRV_NAME_MAX];
	unsigned int type, class;
	size_t data_at, end; /* its data, inside the message */
};

static unsigned int get16(const uint8_t *bytes)
{
	return (unsigned int)bytes[0] << 8 | bytes[1];
}

static char normalize(uint8_t byte)
{
	/* not tolower() and isalnum(): they ask the application's locale */
	if (byte >= 'A' && byte <= 'Z')
		return (char)(byte - 'A' + 'a');
	if ((byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9'))
		return (char)byte;
	return byte == '-' || byte == '_' ? (char)byte : '?';
}

/* Normalizes a character of a name as text, where dots separate labels. */
static char normalize_text(char c)
{
	return c == '.' ? c : normalize((uint8_t)c);
}

/* Appends a label to @name, which has @used bytes. Returns its new length, 0 if it gets too long. */
static size_t label_append(char name[SRV_NAME_MAX], size_t used, const uint8_t *label, size_t len)
{
	if (used + (used > 0) + len >= SRV_NAME_MAX)
		return 0;
	if (used > 0)
		name[used++] = '.';
	while (len-- > 0)
		name[used++] = normalize(*label++);
	return used;
}

/* Reads the name at *@at, and moves *@at behind it; "" is the root. Returns 0 or -EBADMSG. */
static int name_read(const struct message *msg, size_t *at, char out[SRV_NAME_MAX])
{
	size_t pos = *at, lowest = *at, used = 0;
	unsigned int pointers = 0;

	for (;;) {
		size_t len = pos < msg->len ? msg->data[pos] : SIZE_MAX;

		if (len <= LABEL_MAX && len >= msg->len - pos)
			return -EBADMSG;
		if (len == 0) {
			out[used] = '\0';
			if (!pointers)
				*at = pos + 1;
			return 0;
		}
		if (len <= LABEL_MAX) {
			used = label_append(out, used, msg->data + pos + 1, len);
			if (!used)
				return -EBADMSG;
			pos += 1 + len;
			continue;
		}
		if ((len & 0xc0) != 0xc0 || msg->len - pos < 2)
			return -EBADMSG; /* past the end, or a kind of label that was never used */
		if (!pointers)
			*at = pos + 2;
		pos = get16(msg->data + pos) & 0x3fff;
		if (pos >= lowest || ++pointers > POINTERS_MAX)
			return -EBADMSG;
		lowest = pos;
	}
}

/* Reads the header and skips the questions. Returns 0 or a negative errno for srv_parse(). */
static int message_read(struct message *msg, const uint8_t *data, size_t len)
{
	unsigned int flags, questions;
	char name[SRV_NAME_MAX];

	if (len < HEADER_LEN)
		return -EBADMSG;
	flags = get16(data + 2);
	questions = get16(data + 4);
	if (!(flags & FLAG_RESPONSE))
		return -EBADMSG;
	if (flags & RCODE_MASK)
		return (flags & RCODE_MASK) == RCODE_NAME_ERROR ? -ENOENT : -EAGAIN;
	*msg = (struct message){ .data = data, .len = len, .answers_at = HEADER_LEN,
				 .answers = get16(data + 6), .truncated = flags & FLAG_TRUNCATED };
	while (questions-- > 0) {
		if (name_read(msg, &msg->answers_at, name) < 0 ||
		    len - msg->answers_at < QUESTION_REST_LEN)
			return -EBADMSG;
		msg->answers_at += QUESTION_REST_LEN;
	}
	return 0;
}

/* Reads the record at *@at, and moves *@at behind it. Returns 0 or -EBADMSG. */
static int record_read(const struct message *msg, size_t *at, struct record *out)
{
	const uint8_t *rest;
	size_t len;

	if (name_read(msg, at, out->owner) < 0 || msg->len - *at < RECORD_REST_LEN)
		return -EBADMSG;
	rest = msg->data + *at;
	out->type = get16(rest);
	out->class = get16(rest + 2);
	len = get16(rest + 8);
	out->data_at = *at + RECORD_REST_LEN;
	if (len > msg->len - out->data_at)
		return -EBADMSG;
	out->end = *at = out->data_at + len;
	return 0;
}

/* Reads a name that must end at the end of the record's data. Returns 0 or -EBADMSG. */
static int last_name_read(const struct message *msg, const struct record *record, size_t at,
			  char out[SRV_NAME_MAX])
{
	return name_read(msg, &at, out) < 0 || at != record->end ? -EBADMSG : 0;
}

/* Takes a record. Returns 0 to get the next one; any other value ends answers_each(), which returns it. */
typedef int take_record(const struct message *msg, const struct record *record, void *arg);

/*
 * Calls @take with each answer of @type for @owner, until it returns a value other than 0. Returns that, or 0, or -EBADMSG. A truncated
 * message ends at the first part that isn't whole.
 */
static int answers_each(const struct message *msg, const char *owner, unsigned int type,
			take_record *take, void *arg)
{
	size_t at = msg->answers_at;

	for (unsigned int n = 0; n < msg->answers; n++) {
		struct record record;
		int ret = record_read(msg, &at, &record);

		if (ret == 0 && record.type == type && record.class == CLASS_IN &&
		    strcmp(record.owner, owner) == 0)
			ret = take(msg, &record, arg);
		if (ret < 0)
			return msg->truncated ? 0 : ret;
		if (ret > 0)
			return ret;
	}
	return 0;
}

static int alias_take(const struct message *msg, const struct record *record, void *arg)
{
	char alias[SRV_NAME_MAX];

	if (last_name_read(msg, record, record->data_at, alias) < 0)
		return -EBADMSG;
	strcpy(arg, alias);
	return 1;
}

struct targets {
	struct srv_target *list;
	size_t count, max;
	bool seen; /* there was a record, usable or not */
};

/* Returns the place for a target of this priority: a free one, that of a target with a higher number, or NULL. */
static struct srv_target *targets_place(struct targets *targets, unsigned int priority)
{
	struct srv_target *worst = targets->list;

	if (targets->count < targets->max)
		return &targets->list[targets->count++];
	for (size_t i = 1; i < targets->count; i++)
		if (targets->list[i].priority > worst->priority)
			worst = &targets->list[i];
	return targets->count && priority < worst->priority ? worst : NULL;
}

static int target_take(const struct message *msg, const struct record *record, void *arg)
{
	const uint8_t *rest = msg->data + record->data_at;
	struct targets *targets = arg;
	struct srv_target *place;
	char name[SRV_NAME_MAX];

	if (record->end - record->data_at < SRV_REST_LEN ||
	    last_name_read(msg, record, record->data_at + SRV_REST_LEN, name) < 0)
		return -EBADMSG;
	targets->seen = true;
	if (!name[0] || name[0] == '-' || strchr(name, '?') || !get16(rest + 4))
		return 0;
	place = targets_place(targets, get16(rest));
	if (place) {
		strcpy(place->name, name);
		place->priority = (uint16_t)get16(rest);
		place->weight = (uint16_t)get16(rest + 2);
		place->port = (uint16_t)get16(rest + 4);
	}
	return 0;
}

/* Writes @text as name_read() would. Returns 0, or -ENOENT for a name that no record can have. */
static int owner_read(char out[SRV_NAME_MAX], const char *text)
{
	size_t len = strlen(text);

	if (len > 0 && text[len - 1] == '.')
		len--;
	if (len >= SRV_NAME_MAX)
		return -ENOENT;
	for (size_t i = 0; i < len; i++)
		out[i] = normalize_text(text[i]);
	out[len] = '\0';
	return 0;
}

int srv_parse(const uint8_t *data, size_t len, const char *owner, struct srv_target *out,
	      size_t max)
{
	struct targets targets = { .list = out, .max = max };
	char name[SRV_NAME_MAX];
	struct message msg;
	int ret = owner_read(name, owner);

	if (ret == 0)
		ret = message_read(&msg, data, len);
	if (ret < 0)
		return ret;
	for (int hops = 0; hops < ALIASES_MAX; hops++) {
		ret = answers_each(&msg, name, TYPE_CNAME, alias_take, name);
		if (ret < 0)
			return ret;
		if (ret == 0)
			break;
	}
	ret = answers_each(&msg, name, TYPE_SRV, target_take, &targets);
	if (ret < 0)
		return ret;
	return targets.seen ? (int)targets.count : -ENOENT;
}

bool srv_is_service(const char *name)
{
	for (const char *c = SERVICE; *c; c++, name++)
		if (normalize_text(*name) != *c)
			return false;
	return *name && *name != '.';
}

/* Does @a come before @b by priority? Among equals, targets without a weight come first, as RFC 2782 demands. */
static bool comes_before(const struct srv_target *a, const struct srv_target *b)
{
	if (a->priority != b->priority)
		return a->priority < b->priority;
	return !a->weight && b->weight;
}

/* Moves targets[from] forward to targets[to]; those between keep their order. */
static void move_forward(struct srv_target *targets, size_t from, size_t to)
{
	struct srv_target moved = targets[from];

	memmove(&targets[to + 1], &targets[to], (from - to) * sizeof(moved));
	targets[to] = moved;
}

/* Picks the target whose running sum of weights is the first to reach a random number from 0 to the sum of all (RFC 2782). */
static size_t pick(const struct srv_target *targets, size_t count, srv_random *random, void *arg)
{
	uint32_t sum = 0, number;

	for (size_t i = 0; i < count; i++)
		sum += targets[i].weight;
	number = random(arg, sum + 1);
	sum = 0;
	for (size_t i = 0; i < count; i++) {
		sum += targets[i].weight;
		if (sum >= number)
			return i;
	}
	return 0;
}

void srv_order(struct srv_target *targets, size_t count, srv_random *random, void *arg)
{
	for (size_t i = 1; i < count; i++) {
		size_t to = i;

		while (to > 0 && comes_before(&targets[i], &targets[to - 1]))
			to--;
		move_forward(targets, i, to);
	}
	for (size_t first = 0, end; first < count; first = end) {
		uint16_t priority = targets[first].priority;

		for (end = first + 1; end < count && targets[end].priority == priority;)
			end++;
		for (size_t i = first; i + 1 < end; i++)
			move_forward(targets, i + pick(targets + i, end - i, random, arg), i);
	}
}
