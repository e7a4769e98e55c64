/* SPDX-License-Identifier: BSD-3-Clause */
/* test_notes.c - notes about connections: what was noted is read, by whom, for how long, and what damage does */
#include "config.h"

#include "client/notes.h"
#include "cache_open.h"
#include "run.h"
#include "tempdir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOTES_MAX 4096

static char directory[PATH_MAX], file[PATH_MAX + sizeof(CACHE_FILE)];
static struct cache cache;
static struct note found[NOTES_MAX];

static void setup(void)
{
	tempdir_make(directory);
	snprintf(file, sizeof(file), "%s/" CACHE_FILE, directory);
	ck_assert_int_eq(cache_open(&cache, directory), 0);
	atomic_store(&cache.network, 7);
}

static void teardown(void)
{
	cache_close(&cache);
	tempdir_remove(directory);
}

static union sockaddr_ip address_of(const char *text)
{
	union sockaddr_ip out;

	ck_assert_int_eq(sockaddr_ip_parse(&out, text, 0), 0);
	return out;
}

static int read_all(uint64_t network)
{
	uid_t owner = (uid_t)-1;
	int count = notes_read(file, network, found, NOTES_MAX, &owner);

	if (count >= 0)
		ck_assert_uint_eq(owner, geteuid());
	return count;
}

START_TEST(test_all_of_a_note)
{
	const struct note note = {
		.cookie = UINT64_C(0x1122334455667788),
		.server = address_of("[2001:db8::7]:443"),
		.converter = address_of("192.0.2.1:1234"),
		.client = address_of("10.0.0.7:40000"),
		.flags = NOTE_SYN_DATA | NOTE_MOVED,
		.connect_ms = 35,
	};
	const int64_t before = cache_now();

	note_put(&cache, &note);
	ck_assert_int_eq(read_all(7), 1);
	ck_assert_uint_eq(found[0].cookie, note.cookie);
	ck_assert(sockaddr_ip_equal(&found[0].server, &note.server));
	ck_assert(sockaddr_ip_equal(&found[0].converter, &note.converter));
	ck_assert(sockaddr_ip_equal(&found[0].client, &note.client));
	ck_assert_uint_eq(found[0].flags, note.flags);
	ck_assert_uint_eq(found[0].connect_ms, 35);
	ck_assert_str_eq(found[0].reason, "");
	ck_assert(found[0].noted >= before && found[0].noted <= cache_now());
}
END_TEST

/* The last note about a socket counts; another network namespace's aren't seen; a socket without a number isn't noted. */
START_TEST(test_which_are_read)
{
	struct note note = { .cookie = 5, .server = address_of("192.0.2.9:80"), .flags = NOTE_DIRECT };

	memset(note.reason, 'x', sizeof(note.reason)); /* too long, without an end */
	note_put(&cache, &note);
	ck_assert_int_eq(read_all(7), 1);
	ck_assert_uint_eq(strlen(found[0].reason), CACHE_REASON_MAX - 1);
	ck_assert_int_eq(found[0].converter.sa.sa_family, AF_UNSPEC);
	note.flags = 0;
	strcpy(note.reason, "");
	note_put(&cache, &note);
	ck_assert_int_eq(read_all(7), 1);
	ck_assert_uint_eq(found[0].flags, 0);
	ck_assert_int_eq(read_all(8), 0);
	note.cookie = 0;
	note_put(&cache, &note);
	ck_assert_int_eq(read_all(7), 1);
}
END_TEST

/* Waits until the notes so far are older than the next one: ages are in milliseconds, and any of the oldest may go first. */
static void wait_for_age(void)
{
	const int64_t before = cache_now();

	while (cache_now() == before)
		;
}

/* Sockets are numbered in sequence: the last 500 of 3000 are there, but for what a full bucket lacks, since the oldest place goes first. */
START_TEST(test_room)
{
	struct note note = { .server = address_of("192.0.2.9:80") };
	int count, late = 0;

	for (note.cookie = 1; note.cookie <= 3000; note.cookie++) {
		if (note.cookie == 2501)
			wait_for_age();
		note_put(&cache, &note);
	}
	count = read_all(7);
	for (int i = 0; i < count; i++)
		late += found[i].cookie > 2500;
	ck_assert_int_ge(late, 498);
	ck_assert_int_le(count, 2048);
}
END_TEST

/* A file of another layout, boot or kind has no notes, and a damaged note is none. */
START_TEST(test_damage)
{
	struct note note = { .cookie = 9, .server = address_of("192.0.2.9:80") };
	uid_t owner;
	char byte;
	int fd;

	note_put(&cache, &note);
	fd = open(file, O_RDWR | O_CLOEXEC);
	for (off_t at = 0; at < cache_file_size(); at++) {
		ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
		if (!byte || at < (off_t)sizeof(struct cache_header))
			continue;
		byte ^= 0x10;
		ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
		ck_assert_int_eq(read_all(7), 0);
		byte ^= 0x10;
		ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
	}
	ck_assert_int_eq(read_all(7), 1);
	ck_assert_int_eq(pread(fd, &byte, 1, 30), 1);
	byte++;
	ck_assert_int_eq(pwrite(fd, &byte, 1, 30), 1); /* of the boot's name */
	ck_assert_int_eq(read_all(7), -EINVAL);
	close(fd);
	ck_assert_int_eq(notes_read(directory, 7, found, NOTES_MAX, &owner), -EINVAL);
	ck_assert_int_eq(notes_read("/nonexistent", 7, found, NOTES_MAX, &owner), -ENOENT);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("notes");
	Suite *suite = suite_create("notes");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_all_of_a_note);
	tcase_add_test(tcase, test_which_are_read);
	tcase_add_test(tcase, test_room);
	tcase_add_test(tcase, test_damage);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
