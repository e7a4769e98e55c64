/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * elf_image.c - small ELF files, made to order
 *
 * Places of fields are those of the System V ABI, chapter 4, by their figures and not by elf.h,
 * which the code under test uses.
 */
#include "elf_image.h"

#include <string.h>

/* Offsets in the file. The program headers in front of them end at 288 at most. */
enum {
	LOADER_AT = 288,
	NOTE_AT = 328,
	NOTE_SIZE = 12 + 4 + 4,
	STRINGS_AT = 352,
	STRINGS_SIZE = 48,
	DYNAMIC_AT = 400,
	NAMES_AT = 464,
	SECTIONS_AT = 496,
};

#define ADDRESS 0x400000 /* where the beginning of the file is loaded */

void elf_image_put(struct elf_image *image, size_t at, size_t size, uint64_t value)
{
	for (size_t i = 0; i < size; i++)
		image->bytes[at + (image->spec.big_endian ? size - 1 - i : i)] =
			(uint8_t)(value >> 8 * i);
}

/* Writes an address or an offset, which is 4 or 8 bytes. */
static void put_word(struct elf_image *image, size_t at, uint64_t value)
{
	elf_image_put(image, at, image->spec.is32 ? 4 : 8, value);
}

size_t elf_image_segment(const struct elf_image *image, size_t index)
{
	return image->spec.is32 ? 52 + 32 * index : 64 + 56 * index;
}

void elf_image_put_segment(struct elf_image *image, size_t index, uint32_t type, uint64_t offset,
			   uint64_t size)
{
	size_t at = elf_image_segment(image, index);
	bool is32 = image->spec.is32;

	elf_image_put(image, at, 4, type);
	put_word(image, at + (is32 ? 4 : 8), offset);
	put_word(image, at + (is32 ? 8 : 16), ADDRESS + offset);
	put_word(image, at + (is32 ? 16 : 32), size);
	put_word(image, at + (is32 ? 20 : 40), size);
	put_word(image, at + (is32 ? 28 : 48), 4);
}

static void put_header(struct elf_image *image)
{
	bool is32 = image->spec.is32;
	size_t sizes = is32 ? 40 : 52; /* e_ehsize and the five fields behind it */

	memcpy(image->bytes, "\x7f" "ELF", 4);
	image->bytes[4] = is32 ? 1 : 2;
	image->bytes[5] = image->spec.big_endian ? 2 : 1;
	image->bytes[6] = 1;
	elf_image_put(image, 16, 2, 3);
	elf_image_put(image, 18, 2, image->spec.machine);
	elf_image_put(image, 20, 4, 1);
	put_word(image, is32 ? 28 : 32, is32 ? 52 : 64);
	put_word(image, is32 ? 32 : 40, SECTIONS_AT);
	elf_image_put(image, sizes, 2, is32 ? 52 : 64);
	elf_image_put(image, sizes + 2, 2, is32 ? 32 : 56);
	elf_image_put(image, sizes + 4, 2, ELF_IMAGE_SEGMENTS);
	elf_image_put(image, sizes + 6, 2, is32 ? 40 : 64);
	elf_image_put(image, sizes + 8, 2, 3);
	elf_image_put(image, sizes + 10, 2, 1);
}

static void put_note(struct elf_image *image)
{
	elf_image_put(image, NOTE_AT, 4, 4);
	elf_image_put(image, NOTE_AT + 4, 4, 4);
	elf_image_put(image, NOTE_AT + 8, 4, 4);
	memcpy(image->bytes + NOTE_AT + 12, image->spec.go_note ? "Go\0" : "GNU", 4);
	memcpy(image->bytes + NOTE_AT + 16, "id/x", 4);
}

/* Writes the dynamic section: DT_NEEDED for each library, the address of the strings, the end. */
static void put_dynamic(struct elf_image *image)
{
	size_t at = DYNAMIC_AT, word = image->spec.is32 ? 4 : 8, string = 1;

	for (size_t i = 0; i < 2 && image->spec.needed[i]; i++) {
		strcpy((char *)image->bytes + STRINGS_AT + string, image->spec.needed[i]);
		put_word(image, at, 1);
		put_word(image, at + word, string);
		at += 2 * word;
		string += strlen(image->spec.needed[i]) + 1;
	}
	put_word(image, at, 5);
	put_word(image, at + word, ADDRESS + STRINGS_AT);
}

/* Writes three sections: the empty one, the names of sections, and the one of Go or Bun, if the spec wants it. */
static void put_sections(struct elf_image *image)
{
	static const char names[] = "\0.shstrtab\0.go.buildinfo\0.bun";
	size_t size = image->spec.is32 ? 40 : 64, offset = image->spec.is32 ? 16 : 24;

	memcpy(image->bytes + NAMES_AT, names, sizeof(names));
	elf_image_put(image, SECTIONS_AT + size, 4, 1);
	put_word(image, SECTIONS_AT + size + offset, NAMES_AT);
	elf_image_put(image, SECTIONS_AT + 2 * size, 4, image->spec.go_section ? 11 : image->spec.bun_section ? 25 : 0);
	image->len = SECTIONS_AT + 3 * size;
}

void elf_image_make(struct elf_image *image, const struct elf_image_spec *spec)
{
	memset(image, 0, sizeof(*image));
	image->spec = *spec;
	put_header(image);
	put_note(image);
	put_sections(image);
	if (spec->loader) {
		strcpy((char *)image->bytes + LOADER_AT, spec->loader);
		elf_image_put_segment(image, ELF_IMAGE_INTERP, 3, LOADER_AT,
				      strlen(spec->loader) + 1);
	}
	elf_image_put_segment(image, ELF_IMAGE_NOTE, 4, NOTE_AT, NOTE_SIZE);
	elf_image_put_segment(image, ELF_IMAGE_LOAD, 1, 0, image->len);
	if (spec->needed[0]) {
		put_dynamic(image);
		elf_image_put_segment(image, ELF_IMAGE_DYNAMIC, 2, DYNAMIC_AT, 64);
	}
}

bool elf_image_read(void *source, uint64_t offset, void *out, size_t len)
{
	struct elf_image_source *image = source;

	image->reads++;
	if (offset > image->len || len > image->len - offset)
		return false;
	memcpy(out, image->bytes + offset, len);
	return true;
}
