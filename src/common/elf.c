/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * elf.c - facts in an ELF file that matter for preloading: its machine, its loader, its C library, Go, Bun
 *
 * We read files of either class and byte order, through one description of each field (struct field), since we look for the wrong kind of
 * file. Each read is bounded and checked, and so is the number of reads: the kernel's limit applies to program headers, and a limit above
 * any linker's output to other tables.
 *
 * We recognize Go programs by the note that their linker writes; one linked with an empty build id (-buildid=) lacks it, and then has a
 * section .go.buildinfo. Bun, and the output of `bun build --compile`, has a section .bun.
 */
#include "config.h"

#include "common/program.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PROGRAM_HEADERS_BYTES_MAX 65536 /* load_elf_phdrs(), fs/binfmt_elf.c */
#define SECTIONS_MAX 4096
#define NOTES_MAX 64
#define DYNAMIC_MAX 4096
#define NAME_BYTES 32 /* of a library or section: longer than the names that we look for */
#define GO_NOTE_TYPE 4 /* ELF_NOTE_GOBUILDID_TAG, cmd/link/internal/ld/elf.go */

/* The place of a field in each class. */
struct field {
	uint8_t offset32, size32, offset64, size64;
};

#define FIELD(type, member) \
	{ offsetof(Elf32_##type, member), sizeof(((Elf32_##type *)0)->member), \
	  offsetof(Elf64_##type, member), sizeof(((Elf64_##type *)0)->member) }

static const struct field e_machine = FIELD(Ehdr, e_machine);
static const struct field e_phoff = FIELD(Ehdr, e_phoff), e_phnum = FIELD(Ehdr, e_phnum);
static const struct field e_phentsize = FIELD(Ehdr, e_phentsize);
static const struct field e_shoff = FIELD(Ehdr, e_shoff), e_shnum = FIELD(Ehdr, e_shnum);
static const struct field e_shentsize = FIELD(Ehdr, e_shentsize);
static const struct field e_shstrndx = FIELD(Ehdr, e_shstrndx);
static const struct field p_type = FIELD(Phdr, p_type), p_offset = FIELD(Phdr, p_offset);
static const struct field p_vaddr = FIELD(Phdr, p_vaddr), p_filesz = FIELD(Phdr, p_filesz);
static const struct field p_align = FIELD(Phdr, p_align);
static const struct field sh_name = FIELD(Shdr, sh_name), sh_offset = FIELD(Shdr, sh_offset);
static const struct field d_tag = FIELD(Dyn, d_tag), d_val = FIELD(Dyn, d_un.d_val);
static const struct field n_namesz = FIELD(Nhdr, n_namesz), n_descsz = FIELD(Nhdr, n_descsz);
static const struct field n_type = FIELD(Nhdr, n_type);

/* An open file, and its header. */
struct elf {
	elf_read *read;
	void *source;
	bool is64, big_endian;
	uint8_t header[sizeof(Elf64_Ehdr)];
	uint64_t program_headers;
	unsigned int program_header_count;
};

static uint64_t get(const struct elf *elf, const uint8_t *at, const struct field *field)
{
	unsigned int size = elf->is64 ? field->size64 : field->size32;
	uint64_t value = 0;

	at += elf->is64 ? field->offset64 : field->offset32;
	for (unsigned int i = 0; i < size; i++)
		value = value << 8 | at[elf->big_endian ? i : size - 1 - i];
	return value;
}

static size_t size_of(const struct elf *elf, size_t size32, size_t size64)
{
	return elf->is64 ? size64 : size32;
}

/* Reads entry @index of a table of @size bytes each. */
static bool read_entry(const struct elf *elf, uint64_t table, uint64_t index, void *out,
		       size_t size)
{
	uint64_t offset;

	return !__builtin_mul_overflow(index, size, &offset) &&
	       !__builtin_add_overflow(offset, table, &offset) &&
	       elf->read(elf->source, offset, out, size);
}

static bool read_program_header(const struct elf *elf, unsigned int index,
				uint8_t out[static sizeof(Elf64_Phdr)])
{
	return read_entry(elf, elf->program_headers, index, out,
			  size_of(elf, sizeof(Elf32_Phdr), sizeof(Elf64_Phdr)));
}

/* Reads a short string, always terminated: cuts a longer one, and ends at the end of the file. */
static void read_name(const struct elf *elf, uint64_t offset, char out[static NAME_BYTES])
{
	size_t len = NAME_BYTES - 1;

	while (len > 0 && !elf->read(elf->source, offset, out, len))
		len--;
	out[len] = '\0';
}

static int read_header(struct elf *elf)
{
	uint8_t *ident = elf->header;
	size_t size;

	if (!elf->read(elf->source, 0, ident, SELFMAG) || memcmp(ident, ELFMAG, SELFMAG) != 0)
		return -ENOEXEC;
	if (!elf->read(elf->source, 0, ident, EI_NIDENT) ||
	    (ident[EI_CLASS] != ELFCLASS32 && ident[EI_CLASS] != ELFCLASS64) ||
	    (ident[EI_DATA] != ELFDATA2LSB && ident[EI_DATA] != ELFDATA2MSB))
		return -EBADMSG;
	elf->is64 = ident[EI_CLASS] == ELFCLASS64;
	elf->big_endian = ident[EI_DATA] == ELFDATA2MSB;
	if (!elf->read(elf->source, 0, elf->header,
		       size_of(elf, sizeof(Elf32_Ehdr), sizeof(Elf64_Ehdr))))
		return -EBADMSG;
	size = size_of(elf, sizeof(Elf32_Phdr), sizeof(Elf64_Phdr));
	elf->program_headers = get(elf, elf->header, &e_phoff);
	elf->program_header_count = (unsigned int)get(elf, elf->header, &e_phnum);
	if (!elf->program_header_count || get(elf, elf->header, &e_phentsize) != size ||
	    elf->program_header_count * size > PROGRAM_HEADERS_BYTES_MAX)
		return -EBADMSG;
	return 0;
}

/* --- the C library ----------------------------------------------------------- */

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static const struct libc_name {
	const char *start; /* of the file's name */
	enum elf_libc libc;
} loaders[] = {
	{ "ld-musl-", ELF_LIBC_MUSL },
	{ "ld-linux", ELF_LIBC_GLIBC },
	{ "ld64.so.", ELF_LIBC_GLIBC },
	{ "ld.so.", ELF_LIBC_GLIBC },
	{ "", ELF_LIBC_UNKNOWN },
}, libraries[] = {
	{ "libc.so.6", ELF_LIBC_GLIBC },
	{ "libc.musl-", ELF_LIBC_MUSL },
	{ "libc.so", ELF_LIBC_MUSL }, /* also Android's, whose loader tells */
	{ "", ELF_LIBC_NONE },
};

static enum elf_libc libc_by_name(const struct libc_name *names, const char *name)
{
	while (!starts_with(name, names->start))
		names++;
	return names->libc;
}

/* --- segments ------------------------------------------------------------------ */

/* Reads PT_INTERP. The kernel demands that it is terminated, and not empty. */
static int read_loader(const struct elf *elf, const uint8_t *segment, struct elf_facts *out)
{
	uint64_t size = get(elf, segment, &p_filesz);

	if (size < 2 || size > sizeof(out->loader) ||
	    !elf->read(elf->source, get(elf, segment, &p_offset), out->loader, (size_t)size) ||
	    out->loader[size - 1] || !out->loader[0])
		return -EBADMSG;
	return 0;
}

/* Is the note of the Go linker in this PT_NOTE? The kernel executes a file with damaged notes. */
static bool has_go_note(const struct elf *elf, const uint8_t *segment)
{
	uint64_t offset = get(elf, segment, &p_offset), left = get(elf, segment, &p_filesz);
	uint64_t align = get(elf, segment, &p_align) == 8 ? 8 : 4;

	for (unsigned int i = 0; i < NOTES_MAX; i++) {
		uint8_t note[sizeof(Elf64_Nhdr)];
		uint64_t name_size, size;
		char name[4];

		if (left < sizeof(note) || !elf->read(elf->source, offset, note, sizeof(note)))
			return false;
		name_size = get(elf, note, &n_namesz);
		if (name_size == sizeof(name) && get(elf, note, &n_type) == GO_NOTE_TYPE &&
		    read_entry(elf, offset, sizeof(note) / sizeof(name), name, sizeof(name)) &&
		    memcmp(name, "Go\0", sizeof(name)) == 0)
			return true;
		/* all of 32 bits: no overflow */
		size = sizeof(note) + name_size + align - 1;
		size = size / align * align + get(elf, note, &n_descsz) + align - 1;
		size = size / align * align;
		if (size > left)
			return false;
		left -= size;
		offset += size;
	}
	return false;
}

/* Finds the place in the file of the bytes that are loaded at @address; returns false if they aren't in the file. */
static bool offset_of(const struct elf *elf, uint64_t address, uint64_t *offset)
{
	for (unsigned int i = 0; i < elf->program_header_count; i++) {
		uint8_t segment[sizeof(Elf64_Phdr)];
		uint64_t start, at;

		if (!read_program_header(elf, i, segment))
			return false;
		start = get(elf, segment, &p_vaddr);
		at = get(elf, segment, &p_offset);
		if (get(elf, segment, &p_type) == PT_LOAD && address >= start &&
		    address - start < get(elf, segment, &p_filesz))
			return !__builtin_add_overflow(at, address - start, offset);
	}
	return false;
}

/* Reads one entry of the dynamic section; returns false at its end. */
static bool read_dynamic(const struct elf *elf, const uint8_t *segment, uint64_t index,
			 uint64_t *tag, uint64_t *value)
{
	size_t size = size_of(elf, sizeof(Elf32_Dyn), sizeof(Elf64_Dyn));
	uint8_t entry[sizeof(Elf64_Dyn)];

	if (index >= DYNAMIC_MAX || index >= get(elf, segment, &p_filesz) / size ||
	    !read_entry(elf, get(elf, segment, &p_offset), index, entry, size))
		return false;
	*tag = get(elf, entry, &d_tag);
	*value = get(elf, entry, &d_val);
	return *tag != DT_NULL;
}

/* Returns the C library among DT_NEEDED; @asan: set if AddressSanitizer's is there. Leaves complaints about damage to the loader. */
static enum elf_libc read_needed(const struct elf *elf, const uint8_t *segment, bool *asan)
{
	uint64_t tag, value, address = 0, strings, offset;
	enum elf_libc found = ELF_LIBC_NONE;

	/* the entry for the string table may follow the names that are in it */
	for (uint64_t i = 0; read_dynamic(elf, segment, i, &tag, &value); i++)
		if (tag == DT_STRTAB)
			address = value;
	if (!offset_of(elf, address, &strings))
		return ELF_LIBC_NONE;
	for (uint64_t i = 0; read_dynamic(elf, segment, i, &tag, &value); i++) {
		char name[NAME_BYTES];

		if (tag != DT_NEEDED || __builtin_add_overflow(strings, value, &offset))
			continue;
		read_name(elf, offset, name);
		*asan = *asan || starts_with(name, "libasan.so") || starts_with(name, "libclang_rt.asan");
		if (found == ELF_LIBC_NONE)
			found = libc_by_name(libraries, name);
	}
	return found;
}

/* --- sections -------------------------------------------------------------------- */

/* Evaluates the names of sections. The kernel executes a file without any. */
static void look_at_sections(const struct elf *elf, struct elf_facts *out)
{
	size_t size = size_of(elf, sizeof(Elf32_Shdr), sizeof(Elf64_Shdr));
	uint64_t table = get(elf, elf->header, &e_shoff), count = get(elf, elf->header, &e_shnum);
	uint8_t section[sizeof(Elf64_Shdr)];
	uint64_t names;

	if (!table || get(elf, elf->header, &e_shentsize) != size || count > SECTIONS_MAX ||
	    !read_entry(elf, table, get(elf, elf->header, &e_shstrndx), section, size))
		return;
	names = get(elf, section, &sh_offset);
	for (uint64_t i = 0; i < count; i++) {
		char name[NAME_BYTES];
		uint64_t offset;

		if (!read_entry(elf, table, i, section, size) ||
		    __builtin_add_overflow(names, get(elf, section, &sh_name), &offset))
			return;
		read_name(elf, offset, name);
		out->go |= strcmp(name, ".go.buildinfo") == 0;
		out->own_waits |= strcmp(name, ".bun") == 0;
	}
}

int elf_inspect(struct elf_facts *out, elf_read *read, void *source)
{
	struct elf elf = { .read = read, .source = source };
	enum elf_libc needed = ELF_LIBC_NONE;
	bool dynamic = false;
	int ret = read_header(&elf);

	if (ret < 0)
		return ret;
	memset(out, 0, sizeof(*out));
	out->is64 = elf.is64;
	out->big_endian = elf.big_endian;
	out->machine = (uint16_t)get(&elf, elf.header, &e_machine);
	for (unsigned int i = 0; i < elf.program_header_count; i++) {
		uint8_t segment[sizeof(Elf64_Phdr)];
		uint64_t type;

		if (!read_program_header(&elf, i, segment))
			return -EBADMSG;
		type = get(&elf, segment, &p_type);
		if (type == PT_INTERP && !out->loader[0] && read_loader(&elf, segment, out) < 0)
			return -EBADMSG;
		if (type == PT_NOTE && !out->go)
			out->go = has_go_note(&elf, segment);
		if (type == PT_DYNAMIC && !dynamic)
			needed = read_needed(&elf, segment, &out->needs_asan);
		dynamic = dynamic || type == PT_DYNAMIC;
	}
	look_at_sections(&elf, out);
	out->needs_libc = needed != ELF_LIBC_NONE;
	out->libc = out->loader[0] ? libc_by_name(loaders, program_base_name(out->loader, strlen(out->loader))) : needed;
	return 0;
}

bool elf_same_machine(const struct elf_facts *a, const struct elf_facts *b)
{
	return a->machine == b->machine && a->is64 == b->is64 && a->big_endian == b->big_endian;
}

const char *elf_machine_format(const struct elf_facts *facts, char buf[static ELF_MACHINE_STRLEN])
{
	static const struct {
		uint16_t machine;
		const char *name;
	} names[] = {
		{ EM_386, "i386" },	   { EM_X86_64, "x86-64" },
		{ EM_ARM, "ARM" },	   { EM_AARCH64, "AArch64" },
		{ EM_RISCV, "RISC-V" },	   { 258 /* EM_LOONGARCH */, "LoongArch" },
		{ EM_PPC, "PowerPC" },	   { EM_PPC64, "PowerPC" },
		{ EM_MIPS, "MIPS" },	   { EM_S390, "S/390" },
		{ EM_SPARC, "SPARC" },	   { EM_SPARCV9, "SPARC" },
	};
	char number[sizeof("machine 65535")];
	const char *name = number;

	snprintf(number, sizeof(number), "machine %u", facts->machine);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].machine == facts->machine)
			name = names[i].name;
	snprintf(buf, ELF_MACHINE_STRLEN, "%s, %d bit%s", name, facts->is64 ? 64 : 32,
		 facts->big_endian ? ", big-endian" : "");
	return buf;
}

const char *elf_libc_name(enum elf_libc libc)
{
	static const char *const names[] = {
		[ELF_LIBC_NONE] = "no C library",
		[ELF_LIBC_GLIBC] = "glibc",
		[ELF_LIBC_MUSL] = "musl",
		[ELF_LIBC_UNKNOWN] = "another C library",
	};
	static_assert(sizeof(names) / sizeof(names[0]) == ELF_LIBC_COUNT, "a name for each");

	return names[libc];
}
