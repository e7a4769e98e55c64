/* SPDX-License-Identifier: BSD-3-Clause */
/* elf_image.h - small ELF files, made to order */
#ifndef TESTS_UNIT_ELF_IMAGE_H
#define TESTS_UNIT_ELF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELF_IMAGE_MAX 1024

struct elf_image_spec {
	bool is32, big_endian;
	uint16_t machine;
	const char *loader;          /* up to 39 bytes; NULL: no PT_INTERP */
	const char *needed[2];       /* up to 15 bytes each; NULL: none; both NULL: no PT_DYNAMIC */
	bool go_note, go_section, bun_section;
};

struct elf_image {
	struct elf_image_spec spec;
	uint8_t bytes[ELF_IMAGE_MAX];
	size_t len;
};

/* Makes the file that @spec describes. */
void elf_image_make(struct elf_image *image, const struct elf_image_spec *spec);

/* Writes an integer of @size bytes in the file's byte order, for tests that damage the file. */
void elf_image_put(struct elf_image *image, size_t at, size_t size, uint64_t value);

/* Returns the offset of program header @index; writes the fields of it that tests damage. */
size_t elf_image_segment(const struct elf_image *image, size_t index);
void elf_image_put_segment(struct elf_image *image, size_t index, uint32_t type, uint64_t offset,
			   uint64_t size);

/* The index of a segment in the file. */
enum { ELF_IMAGE_INTERP, ELF_IMAGE_NOTE, ELF_IMAGE_LOAD, ELF_IMAGE_DYNAMIC, ELF_IMAGE_SEGMENTS };

/* Reads from the file, for elf_inspect(), and counts the calls in elf_image_source.reads. */
struct elf_image_source {
	const uint8_t *bytes;
	size_t len;
	unsigned int reads;
};
bool elf_image_read(void *source, uint64_t offset, void *out, size_t len);

#endif
