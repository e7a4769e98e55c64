/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * preload.c - does preloading a library reach a program?
 *
 * This depends on the loader's secure-execution mode, the loader itself (a static program has none), the machine and C library that both
 * must share, and whether the program uses its C library for sockets at all, which Go code doesn't.
 *
 * Secure execution, as in cap_bprm_creds_from_file() of Linux 6.18: the effective user or group differs from the real one, or the file has
 * capabilities and the real user isn't root. Set-user-ID bits have no effect on scripts, on file systems mounted nosuid and under
 * no_new_privs; capabilities have none on nosuid.
 */
#include "config.h"

#include "common/program.h"

#include <assert.h>
#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const struct {
	const char *name;
	enum preload_level level;
	const char *problem, *remedy;
} verdicts[] = {
	[PRELOAD_WORKS] = { "works", PRELOAD_LEVEL_WORKS, "is dynamically linked", NULL },
	[PRELOAD_NO_FORMAT] = { "no-format", PRELOAD_LEVEL_WORKS,
				"isn't an ELF file: the shell runs it, or what binfmt_misc has for it",
				NULL },
	[PRELOAD_UNREADABLE] = { "unreadable", PRELOAD_LEVEL_DOUBTFUL,
				 "can't be read, so that nothing tells whether preloading reaches "
				 "it",
				 "see with --log whether its connections are converted" },
	[PRELOAD_GO_WITH_C] = { "go-with-c", PRELOAD_LEVEL_DOUBTFUL,
				"is a Go program: its Go code makes system calls of its own, which "
				"no preloaded library sees; only its C code is converted",
				NULL },
	[PRELOAD_OWN_WAITS] = { "own-waits", PRELOAD_LEVEL_DOUBTFUL,
				"is Bun, or made by it: it waits for sockets by system calls of its own, and with a preloaded library "
				"would see them connected too early",
				NULL },
	[PRELOAD_OWN_CONNECTS] = { "own-connects", PRELOAD_LEVEL_DOUBTFUL,
				   "has code that connects by system calls of its own, which no preloaded library sees", NULL },
	[PRELOAD_GO] = { "go", PRELOAD_LEVEL_REFUSED,
			 "is a Go program: it makes system calls of its own, which no preloaded "
			 "library sees",
			 NULL },
	[PRELOAD_STATIC] = { "static", PRELOAD_LEVEL_REFUSED,
			     "is statically linked: no library can be preloaded into it",
			     "use a dynamically linked build of it" },
	[PRELOAD_DAMAGED] = { "damaged", PRELOAD_LEVEL_REFUSED, "is a damaged ELF file",
			      "install it again" },
	[PRELOAD_FOREIGN] = { "foreign", PRELOAD_LEVEL_REFUSED,
			      "is for another machine than libconvert.so",
			      "install libconvert for that machine, too, or name its library with --library" },
	[PRELOAD_OTHER_LIBC] = { "other-libc", PRELOAD_LEVEL_REFUSED,
				 "uses another C library than libconvert.so",
				 "name a library that was built with that one with --library" },
	[PRELOAD_NO_INTERPRETER] = { "no-interpreter", PRELOAD_LEVEL_REFUSED,
				     "can't be started without its interpreter",
				     "install the package that it is in" },
	[PRELOAD_SETUID] = { "setuid", PRELOAD_LEVEL_REFUSED,
			     "is set-user-ID: its loader ignores LD_PRELOAD",
			     "if it starts another program, put convertize in between, as in sudo "
			     "convertize ..." },
	[PRELOAD_SETGID] = { "setgid", PRELOAD_LEVEL_REFUSED,
			     "is set-group-ID: its loader ignores LD_PRELOAD",
			     "if it starts another program, put convertize in between, as in sg "
			     "GROUP \"convertize ...\"" },
	[PRELOAD_CAPABILITIES] = { "capabilities", PRELOAD_LEVEL_REFUSED,
				   "has file capabilities: its loader ignores LD_PRELOAD",
				   "run it as root, or a copy of it, which has none" },
};
static_assert(sizeof(verdicts) / sizeof(verdicts[0]) == PRELOAD_VERDICT_COUNT,
	      "an entry for each verdict");

static enum preload_verdict secure_verdict(const struct program_file *file,
					   const struct preload_caller *caller)
{
	bool bits = !file->nosuid && !caller->no_new_privs;

	if (file->kind == PROGRAM_SCRIPT)
		return PRELOAD_WORKS;
	if (bits && file->mode & S_ISUID && file->uid != caller->uid)
		return PRELOAD_SETUID;
	/* without the group's x bit, the set-group-ID bit means mandatory locks */
	if (bits && file->mode & S_ISGID && file->mode & S_IXGRP && file->gid != caller->gid)
		return PRELOAD_SETGID;
	if (file->capabilities && !file->nosuid && caller->uid != 0)
		return PRELOAD_CAPABILITIES;
	return PRELOAD_WORKS;
}

static bool is_known(enum elf_libc libc)
{
	return libc != ELF_LIBC_UNKNOWN && libc != ELF_LIBC_NONE;
}

static enum preload_verdict elf_verdict(const struct elf_facts *elf,
					const struct elf_facts *library)
{
	if (!elf_same_machine(elf, library))
		return PRELOAD_FOREIGN;
	if (elf->go && (!elf->loader[0] || !elf->needs_libc))
		return PRELOAD_GO;
	if (!elf->loader[0])
		return PRELOAD_STATIC;
	if (elf->libc != library->libc && is_known(elf->libc) && is_known(library->libc))
		return PRELOAD_OTHER_LIBC;
	return elf->go ? PRELOAD_GO_WITH_C : elf->own_waits ? PRELOAD_OWN_WAITS : PRELOAD_WORKS;
}

enum preload_verdict preload_file_verdict(const struct program_file *file,
					  const struct elf_facts *library,
					  const struct preload_caller *caller)
{
	enum preload_verdict verdict = secure_verdict(file, caller);

	if (verdict != PRELOAD_WORKS)
		return verdict;
	if (file->kind == PROGRAM_UNREADABLE)
		return PRELOAD_UNREADABLE;
	if (file->kind == PROGRAM_DAMAGED)
		return PRELOAD_DAMAGED;
	if (file->kind == PROGRAM_OTHER)
		return PRELOAD_NO_FORMAT;
	if (file->kind == PROGRAM_ELF)
		verdict = elf_verdict(&file->elf, library);
	if (file->interpreter_missing && (preload_level(verdict) != PRELOAD_LEVEL_REFUSED || verdict == PRELOAD_OTHER_LIBC))
		return PRELOAD_NO_INTERPRETER;
	return verdict;
}

enum preload_verdict preload_program_verdict(const struct program *program,
					     const struct elf_facts *library,
					     const struct preload_caller *caller, size_t *index)
{
	size_t last = program->count - 1;
	enum preload_verdict worst = preload_file_verdict(&program->files[last], library, caller);

	*index = last; /* the file that finally runs, unless another's verdict is worse */
	for (size_t i = 0; i < program->count; i++) {
		enum preload_verdict verdict =
			preload_file_verdict(&program->files[i], library, caller);

		if (preload_level(verdict) > preload_level(worst) ||
		    (i < *index && preload_level(verdict) == preload_level(worst) &&
		     preload_level(worst) != PRELOAD_LEVEL_WORKS)) {
			worst = verdict;
			*index = i;
		}
	}
	return worst;
}

enum preload_level preload_level(enum preload_verdict verdict)
{
	return verdicts[verdict].level;
}

/* May this kernel run programs of the program's machine beside its own? */
static bool is_of_this_kernel(const struct elf_facts *program)
{
#if defined(__x86_64__) || defined(__i386__)
	return program->machine == EM_386 || program->machine == EM_X86_64;
#elif defined(__aarch64__) || defined(__arm__)
	return program->machine == EM_ARM || program->machine == EM_AARCH64;
#else
	return !program;
#endif
}

bool preload_leaves_to_supervisor(enum preload_verdict verdict, const struct elf_facts *program)
{
	return verdict == PRELOAD_STATIC || verdict == PRELOAD_GO || verdict == PRELOAD_GO_WITH_C || verdict == PRELOAD_OWN_WAITS ||
	       verdict == PRELOAD_OWN_CONNECTS || verdict == PRELOAD_OTHER_LIBC || (verdict == PRELOAD_FOREIGN && is_of_this_kernel(program));
}

const char *preload_name(enum preload_verdict verdict)
{
	return verdicts[verdict].name;
}

const char *preload_remedy(enum preload_verdict verdict)
{
	return verdicts[verdict].remedy;
}

/* Writes the part of the sentence that depends on the file. */
static void format_detail(enum preload_verdict verdict, const struct program_file *file,
			  const struct elf_facts *library, char *buf, size_t size)
{
	char own[ELF_MACHINE_STRLEN], other[ELF_MACHINE_STRLEN];

	buf[0] = '\0';
	switch (verdict) {
	case PRELOAD_FOREIGN:
		snprintf(buf, size, " (%s; the library: %s)", elf_machine_format(&file->elf, own),
			 elf_machine_format(library, other));
		break;
	case PRELOAD_OTHER_LIBC:
		snprintf(buf, size, " (%s; the library: %s)", elf_libc_name(file->elf.libc),
			 elf_libc_name(library->libc));
		break;
	case PRELOAD_NO_INTERPRETER:
		snprintf(buf, size, " %s, which isn't there",
			 file->kind == PROGRAM_SCRIPT ? file->script.interpreter :
							file->elf.loader);
		break;
	default:
		break;
	}
}

const char *preload_describe(enum preload_verdict verdict, const struct program *program,
			     size_t index, const struct elf_facts *library,
			     char buf[static PRELOAD_TEXT_MAX])
{
	const struct program_file *file = &program->files[index];
	char detail[PATH_MAX + 64];

	format_detail(verdict, file, library, detail, sizeof(detail));
	if (index > 0)
		snprintf(buf, PRELOAD_TEXT_MAX, "%.2000s, which runs %.1500s, %s%.300s", file->path,
			 program->files[0].path, verdicts[verdict].problem, detail);
	else
		snprintf(buf, PRELOAD_TEXT_MAX, "%.3500s %s%.800s", file->path,
			 verdicts[verdict].problem, detail);
	return buf;
}
