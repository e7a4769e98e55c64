/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vfork.c - vfork(2), before which handshakes come to their end as before fork()
 *
 * The child of vfork() returns from it first, on its parent's stack. So no function may be between it and its caller: the entry is
 * written in assembly language, and jumps. On other machines it isn't a hook; a child finds unfinished handshakes there, of
 * which handover_prepare() gives a program nothing.
 */
#include "config.h"

#include "shim/connect/conversion.h"
#include "shim/hooks/hook.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__) || (defined(__aarch64__) && defined(__LP64__))

typedef pid_t vfork_function(void);

static vfork_function *next_vfork = fork; /* for the constructors of other libraries that run before ours */

__attribute__((constructor)) static void bind_vfork(void)
{
	void *found = dlsym(RTLD_NEXT, "vfork");

	if (found)
		memcpy(&next_vfork, &found, sizeof(found));
}

/* Returns where the entry is to jump to. */
vfork_function *vfork_prepare(void);
__attribute__((used)) vfork_function *vfork_prepare(void)
{
	conversion_before_fork();
	return next_vfork;
}

HOOK_NAME(vfork)

#if defined(__x86_64__)
__asm__(".pushsection .text\n"
	".globl vfork\n"
	".type vfork, @function\n"
	".p2align 4\n"
	"vfork:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	subq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call vfork_prepare\n"
	"	addq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	jmp *%rax\n"
	"	.cfi_endproc\n"
	".size vfork, . - vfork\n"
	".popsection\n");
#elif defined(__i386__)
__asm__(".pushsection .text\n"
	".globl vfork\n"
	".type vfork, @function\n"
	".p2align 4\n"
	"vfork:\n"
	"	.cfi_startproc\n"
	"	endbr32\n"
	"	subl $12, %esp\n"
	"	.cfi_adjust_cfa_offset 12\n"
	"	call vfork_prepare\n"
	"	addl $12, %esp\n"
	"	.cfi_adjust_cfa_offset -12\n"
	"	jmp *%eax\n"
	"	.cfi_endproc\n"
	".size vfork, . - vfork\n"
	".popsection\n");
#else
__asm__(".pushsection .text\n"
	".globl vfork\n"
	".type vfork, %function\n"
	".p2align 4\n"
	"vfork:\n"
	"	.cfi_startproc\n"
	"	hint #34\n" /* bti c */
	"	stp x29, x30, [sp, #-16]!\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset 29, -16\n"
	"	.cfi_offset 30, -8\n"
	"	bl vfork_prepare\n"
	"	ldp x29, x30, [sp], #16\n"
	"	.cfi_def_cfa_offset 0\n"
	"	.cfi_restore 29\n"
	"	.cfi_restore 30\n"
	"	mov x16, x0\n"
	"	br x16\n"
	"	.cfi_endproc\n"
	".size vfork, . - vfork\n"
	".popsection\n");
#endif

#endif
