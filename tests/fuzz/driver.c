/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * driver.c - run a fuzzer's entry point without libFuzzer
 *
 * Usage: fuzz_NAME [DIRECTORY [MUTATIONS]]
 * Feeds it each file of the corpus, then MUTATIONS pseudo-random changes of each.
 * The generator starts from a constant and files are taken in the order of their
 * names, so that a failure comes again with the same call.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_MAX 1100 /* bytes: more than the longest message */
#define MUTATIONS 5000 /* of each file: about a second, and some more under sanitizers */

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	uint8_t data[INPUT_MAX];
	size_t len;
};

static uint64_t random_state = 0x8803226300000001;

/* Returns a pseudo-random number less than @limit (xorshift64*). */
static size_t random_below(size_t limit)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return (size_t)((random_state * 0x2545f4914f6cdd1d) >> 33) % limit;
}

/* Runs the fuzzer on a copy of exactly its size on the heap, so that AddressSanitizer sees an overread. */
static void run(const struct input *input)
{
	uint8_t *copy = malloc(input->len);

	if (!copy && input->len > 0)
		abort();
	memcpy(copy, input->data, input->len);
	LLVMFuzzerTestOneInput(copy, input->len);
	free(copy);
}

static void change_bit(struct input *input, size_t at)
{
	input->data[at] ^= (uint8_t)(1u << random_below(8));
}

static void change_byte(struct input *input, size_t at)
{
	/* values that matter: lengths at their limits, types of TLVs, codes of errors */
	static const uint8_t known[] = { 0,  1,  2,  3,  5,   6,   10,  20,  21,
					 22, 30, 32, 97, 127, 128, 192, 254, 255 };

	input->data[at] = known[random_below(ARRAY_SIZE(known))];
}

static void change_any(struct input *input, size_t at)
{
	input->data[at] = (uint8_t)random_below(256);
}

static void cut_end(struct input *input, size_t at)
{
	input->len = at;
}

static void remove_word(struct input *input, size_t at)
{
	at -= at % 4;
	if (input->len - at < 4)
		return;
	memmove(input->data + at, input->data + at + 4, input->len - at - 4);
	input->len -= 4;
}

/* Copies words from anywhere in the input to @at, so that a TLV may be there twice. */
static void repeat_words(struct input *input, size_t at)
{
	size_t len = 4 * (1 + random_below(6));
	size_t from = random_below(input->len) / 4 * 4;
	uint8_t words[24];

	at -= at % 4;
	if (len > input->len - from || len > INPUT_MAX - input->len)
		return;
	memcpy(words, input->data + from, len);
	memmove(input->data + at + len, input->data + at, input->len - at);
	memcpy(input->data + at, words, len);
	input->len += len;
}

/* Corrects the fixed header of a Convert message; hardly any mutation would reach the TLVs otherwise. */
static void fix_total_length(struct input *input, size_t at)
{
	(void)at;
	if (input->len >= 4 && input->len / 4 <= 255 && input->data[2] == 0x22 && input->data[3] == 0x63)
		input->data[1] = (uint8_t)(input->len / 4);
}

static void mutate(struct input *input)
{
	static void (*const changes[])(struct input *, size_t) = {
		change_bit, change_byte, change_any,  cut_end,
		remove_word, repeat_words, fix_total_length, fix_total_length,
	};
	size_t count = 1 + random_below(5);

	while (count-- > 0 && input->len > 0)
		changes[random_below(ARRAY_SIZE(changes))](input, random_below(input->len));
	if (random_below(2))
		fix_total_length(input, 0);
}

static int is_file(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int load(const char *directory, const char *name, struct input *input)
{
	char path[PATH_MAX];
	FILE *file;

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	file = fopen(path, "rb");
	if (!file)
		return -errno;
	input->len = fread(input->data, 1, sizeof(input->data), file);
	fclose(file);
	return 0;
}

int main(int argc, char **argv)
{
	char path[PATH_MAX];
	const char *source = getenv("srcdir");
	unsigned long mutations = argc > 2 ? strtoul(argv[2], NULL, 10) : MUTATIONS;
	const char *directory = argc > 1 ? argv[1] : path;
	struct dirent **names;
	int count;

	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/" FUZZ_CORPUS, source ? source : ".");
	count = scandir(directory, &names, is_file, alphasort);
	if (count <= 0) {
		fprintf(stderr, "%s: no corpus in %s: %s\n", argv[0], directory,
			count < 0 ? strerror(errno) : "it is empty");
		return EXIT_FAILURE;
	}
	for (int i = 0; i < count; i++) {
		struct input seed, input;
		int error = load(directory, names[i]->d_name, &seed);

		if (error) {
			fprintf(stderr, "%s: %s/%s: %s\n", argv[0], directory, names[i]->d_name,
				strerror(-error));
			return EXIT_FAILURE;
		}
		run(&seed);
		for (unsigned long n = 0; n < mutations; n++) {
			input = seed;
			mutate(&input);
			run(&input);
		}
		free(names[i]);
	}
	free(names);
	printf("%s: %d files, %lu mutations of each\n", argv[0], count, mutations);
	return EXIT_SUCCESS;
}
