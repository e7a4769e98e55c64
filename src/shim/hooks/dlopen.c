/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dlopen.c - makes our hooks work in libraries that are loaded with RTLD_DEEPBIND
 *
 * With that flag, a library that dlopen(3) loads looks for symbols first in itself and in the libraries that it needs, the C library among
 * them, and so not in preloaded ones. PHP loads its extensions this way, and libcurl with one of them. The flag protects such a library
 * from other libraries' functions with the names of its own, so we don't clear it. Afterwards we write the addresses of our hooks into the
 * places where the loader has put those of the C library's functions (the relocations of the Global Offset Table), and only there: a
 * function that we don't hook, or that isn't the C library's, stays.
 *
 * With lazy binding such a place has the address of the library's own code until the first call of the function. We look up beforehand what
 * the loader would find then, in the order of RTLD_DEEPBIND, since a library may define the name itself.
 *
 * dlopen() takes its return address as the address of the calling library, whose RUNPATH and $ORIGIN it uses. So our entry is in assembly
 * language: without RTLD_DEEPBIND, or if the caller matters, it is a jump that keeps the return address.
 */
#include "config.h"

#include "shim/connect/conversion.h"
#include "shim/hooks/hook.h"
#include "shim/system/next.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if REBIND_KNOWN

#define NAMES_MAX 192

#if defined(__x86_64__)
#define RELOCATION_SLOT R_X86_64_JUMP_SLOT
#define RELOCATION_ADDRESS R_X86_64_GLOB_DAT
#define RELOCATION_POINTER R_X86_64_64
#elif defined(__aarch64__)
#define RELOCATION_SLOT R_AARCH64_JUMP_SLOT
#define RELOCATION_ADDRESS R_AARCH64_GLOB_DAT
#define RELOCATION_POINTER R_AARCH64_ABS64
#endif

/* For each hooked function, its address in the C library, and the address that a library without RTLD_DEEPBIND finds. */
static struct function {
	const char *name;
	uintptr_t libc, found;
} functions[NAMES_MAX];
static size_t function_count;

/* The names of all hooks as strings. HOOK() puts them into this section; there may be further zeros between them. */
extern const char __start_hook_names[], __stop_hook_names[];

static void functions_find(void)
{
	const char *name = __start_hook_names;
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

	for (; libc && name < __stop_hook_names; name += strlen(name) + 1) {
		struct function *function = &functions[function_count];

		if (!*name || function_count == NAMES_MAX)
			continue;
		function->name = name;
		function->libc = (uintptr_t)dlsym(libc, name);
		function->found = (uintptr_t)dlsym(RTLD_DEFAULT, name);
		function_count += function->libc && function->found && function->libc != function->found;
	}
}

/* Returns the index of the function with this name, or function_count if it isn't hooked. */
static size_t function_named(const char *name)
{
	size_t i = 0;

	while (i < function_count && strcmp(functions[i].name, name) != 0)
		i++;
	return i;
}

/* A walk through the loaded objects, in the order of loading: a library, followed by the libraries that it needs. */
struct walk {
	const struct link_map *first;
	bool has_begun;
	bool sought[NAMES_MAX]; /* a place for this function isn't bound yet */
	bool agreed[NAMES_MAX]; /* and the loader would bind it to the C library's */
};

/* A loaded object, from its program headers. */
struct object {
	uintptr_t base, start, end;
	uintptr_t relro_start, relro_end; /* read-only since it was relocated */
	const ElfW(Dyn) *dynamic;
};

static struct object object_of(const struct dl_phdr_info *info)
{
	struct object object = { .base = info->dlpi_addr, .start = UINTPTR_MAX };

	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uintptr_t at = object.base + header->p_vaddr, end = at + header->p_memsz;

		if (header->p_type == PT_DYNAMIC)
			object.dynamic = (const ElfW(Dyn) *)at;
		if (header->p_type == PT_GNU_RELRO) {
			object.relro_start = at;
			object.relro_end = end;
		}
		if (header->p_type != PT_LOAD)
			continue;
		object.start = at < object.start ? at : object.start;
		object.end = end > object.end ? end : object.end;
	}
	return object;
}

/* Returns a value of the dynamic section, or 0 if there is none. glibc has replaced file offsets in it by addresses. */
static uintptr_t dynamic_value(const ElfW(Dyn) *dynamic, ElfW(Sxword) tag)
{
	for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++)
		if (dynamic->d_tag == tag)
			return dynamic->d_un.d_val;
	return 0;
}

static void place_set(const struct object *object, uintptr_t place, uintptr_t value)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = place & -page;
	bool is_protected = place >= object->relro_start && place < object->relro_end;

	if (is_protected && mprotect((void *)start, page, PROT_READ | PROT_WRITE) < 0)
		return;
	__atomic_store_n((uintptr_t *)place, value, __ATOMIC_RELEASE);
	if (is_protected)
		mprotect((void *)start, page, PROT_READ);
}

/* Rebinds one place where the loader has put the address of a function, or will put it. */
static void relocation_rebind(const struct object *object, const ElfW(Rela) *relocation, struct walk *walk)
{
	const ElfW(Sym) *symbol = (const ElfW(Sym) *)dynamic_value(object->dynamic, DT_SYMTAB) +
				  ELF64_R_SYM(relocation->r_info);
	const char *names = (const char *)dynamic_value(object->dynamic, DT_STRTAB);
	uintptr_t type = ELF64_R_TYPE(relocation->r_info), place = object->base + relocation->r_offset, value;
	size_t index;
	bool is_unbound;

	if (type != RELOCATION_SLOT && type != RELOCATION_ADDRESS &&
	    (type != RELOCATION_POINTER || relocation->r_addend))
		return;
	if (symbol->st_shndx != SHN_UNDEF || !symbol->st_name)
		return;
	value = *(const uintptr_t *)place;
	is_unbound = type == RELOCATION_SLOT && value >= object->start && value < object->end;
	if (!is_unbound && !beneath_is_libc(value))
		return;
	index = function_named(names + symbol->st_name);
	if (index == function_count)
		return;
	if (is_unbound)
		walk->sought[index] = true;
	if (is_unbound ? walk->agreed[index] : value == functions[index].libc)
		place_set(object, place, functions[index].found);
}

static void table_rebind(const struct object *object, ElfW(Sxword) table, ElfW(Sxword) bytes, struct walk *walk)
{
	const ElfW(Rela) *relocation = (const ElfW(Rela) *)dynamic_value(object->dynamic, table);
	uintptr_t count = dynamic_value(object->dynamic, bytes) / sizeof(*relocation);

	for (uintptr_t i = 0; relocation && i < count; i++)
		relocation_rebind(object, &relocation[i], walk);
}

static int object_rebind(struct dl_phdr_info *info, size_t size, void *data)
{
	struct object object = object_of(info);
	struct walk *walk = data;

	(void)size;
	if (object.dynamic == walk->first->l_ld)
		walk->has_begun = true;
	if (!walk->has_begun || !object.dynamic)
		return 0;
	table_rebind(&object, DT_JMPREL, DT_PLTRELSZ, walk);
	table_rebind(&object, DT_RELA, DT_RELASZ, walk);
	return 0;
}

static void rebind_handle(void *handle)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct link_map *first;
	struct walk walk = { .has_begun = false };
	bool is_sought = false;

	if (dlinfo(handle, RTLD_DI_LINKMAP, &first) < 0)
		return;
	walk.first = first;
	pthread_once(&once, functions_find);
	/* The loader holds its lock meanwhile: no object goes, and nothing can be looked up. */
	dl_iterate_phdr(object_rebind, &walk);
	for (size_t i = 0; i < function_count; i++) {
		walk.agreed[i] = walk.sought[i] && (uintptr_t)dlsym(handle, functions[i].name) == functions[i].libc;
		is_sought |= walk.agreed[i];
	}
	walk.has_begun = false;
	if (is_sought)
		dl_iterate_phdr(object_rebind, &walk);
}

static bool rebind_suits(const char *file, const void *caller)
{
	struct link_map *map;
	Dl_info info;

	if (!file || strchr(file, '$')) /* $ORIGIN is the caller's */
		return false;
	if (strchr(file, '/'))
		return true;
	return dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) && map &&
	       !dynamic_value(map->l_ld, DT_RUNPATH) && !dynamic_value(map->l_ld, DT_RPATH);
}

_Static_assert(RTLD_DEEPBIND == 8, "as the assembly language below has it");

typedef void *dlopen_function(const char *file, int flags);

/* next_dlopen for the constructors of other libraries that run before ours. */
static void *dlopen_early(const char *file, int flags)
{
	dlopen_function *function;
	void *found = dlsym(RTLD_NEXT, "dlopen");

	if (!found)
		return NULL;
	memcpy(&function, &found, sizeof(found));
	return function(file, flags);
}

extern dlopen_function *next_dlopen;
__attribute__((used)) dlopen_function *next_dlopen = dlopen_early;

__attribute__((constructor)) static void bind_dlopen(void)
{
	void *found = dlsym(RTLD_NEXT, "dlopen");

	if (found)
		memcpy(&next_dlopen, &found, sizeof(found));
}

/* May we make this call with RTLD_DEEPBIND in the caller's place? */
bool dlopen_suits(const char *file, const void *caller);
__attribute__((used)) bool dlopen_suits(const char *file, const void *caller)
{
	return conversion_enabled() && rebind_suits(file, caller);
}

void *dlopen_deeply(const char *file, int flags);
__attribute__((used)) void *dlopen_deeply(const char *file, int flags)
{
	void *handle = next_dlopen(file, flags);
	int saved_errno = errno;

	if (handle)
		rebind_handle(handle);
	errno = saved_errno;
	return handle;
}

#if defined(__x86_64__)
__asm__(".pushsection .text\n"
	".globl dlopen\n"
	".type dlopen, @function\n"
	".p2align 4\n"
	"dlopen:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	testb $8, %sil\n"
	"	je 1f\n"
	"	pushq %rdi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	pushq %rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	subq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	movq 24(%rsp), %rsi\n" /* the return address */
	"	call dlopen_suits\n"
	"	addq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	popq %rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	popq %rdi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	testb %al, %al\n"
	"	jne dlopen_deeply\n"
	"1:	jmp *next_dlopen(%rip)\n"
	"	.cfi_endproc\n"
	".size dlopen, . - dlopen\n"
	".popsection\n");
#elif defined(__aarch64__)
__asm__(".pushsection .text\n"
	".globl dlopen\n"
	".type dlopen, %function\n"
	".p2align 4\n"
	"dlopen:\n"
	"	.cfi_startproc\n"
	"	hint #34\n" /* bti c */
	"	tbz w1, #3, 1f\n"
	"	stp x29, x30, [sp, #-32]!\n"
	"	.cfi_def_cfa_offset 32\n"
	"	.cfi_offset 29, -32\n"
	"	.cfi_offset 30, -24\n"
	"	stp x0, x1, [sp, #16]\n"
	"	mov x1, x30\n" /* the return address */
	"	bl dlopen_suits\n"
	"	and w9, w0, #0xff\n"
	"	ldp x0, x1, [sp, #16]\n"
	"	ldp x29, x30, [sp], #32\n"
	"	.cfi_def_cfa_offset 0\n"
	"	.cfi_restore 29\n"
	"	.cfi_restore 30\n"
	"	cbz w9, 1f\n"
	"	b dlopen_deeply\n"
	"1:	adrp x16, next_dlopen\n"
	"	ldr x16, [x16, :lo12:next_dlopen]\n"
	"	br x16\n"
	"	.cfi_endproc\n"
	".size dlopen, . - dlopen\n"
	".popsection\n");
#endif

#endif
