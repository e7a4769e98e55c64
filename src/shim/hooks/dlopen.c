/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dlopen.c - dlopen(3) with RTLD_DEEPBIND
 *
 * dlopen() takes its return address for the library that calls it, whose RUNPATH and $ORIGIN count. So the entry is written in
 * assembly language: without RTLD_DEEPBIND, or where the caller matters, it is a jump that leaves the return address as it was.
 */
#include "config.h"

#include "shim/connect/conversion.h"
#include "shim/hooks/hook.h"
#include "shim/hooks/rebind.h"

#include <dlfcn.h>
#include <string.h>

#if REBIND_KNOWN

_Static_assert(RTLD_DEEPBIND == 8, "as the assembly language below has it");

typedef void *dlopen_function(const char *file, int flags);

/* What other libraries' constructors call before ours has run. */
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

/* With RTLD_DEEPBIND: is it for us? */
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
