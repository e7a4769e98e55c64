/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * children.c - reports started programs that the library doesn't reach, or leaves them to a supervisor
 *
 * A static program, one made by Go, a set-user-ID program, or one started without LD_PRELOAD connects directly, and nobody would know. So
 * we inspect the program's file before its start, as convertize does. If convertize has started all this, we ask it to run the program
 * under supervision. The inspection reads a few blocks of each program, so we make it only if it has a use: with a supervisor, a log, or
 * CONVERT_WARN.
 */
#include "config.h"

#include "shim/process/process.h"

#include "client/client_log.h"
#include "common/program.h"
#include "shim/system/next.h"
#include "shim/system/waiting.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PRELOAD "LD_PRELOAD="
#define SEPARATORS ": \t\n" /* between the paths in LD_PRELOAD */
#define CONVERTER "CONVERT_ADDR="

extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden"))); /* our own header, from the linker */

bool children_are_watched;
static char supervisor[PATH_MAX];
static const char *own_name; /* our file's, without its directory; NULL: not loaded by LD_PRELOAD */

/* The memory of an inspection. It is mapped, since a thread's stack may be too small for it. */
struct look {
	struct program program;
	struct elf_facts library;
	char path[PATH_MAX + sizeof("/proc/self/fd/-2147483648/")];
	char text[PRELOAD_TEXT_MAX];
};

/* Finds our library by its name in this value of LD_PRELOAD. Returns its path, of @len bytes, or NULL. */
static const char *find_preload(const char *list, size_t *len)
{
	for (list += strspn(list, SEPARATORS); *list; list += *len + strspn(list + *len, SEPARATORS)) {
		const char *base;

		*len = strcspn(list, SEPARATORS);
		base = program_base_name(list, *len);
		if ((size_t)(list + *len - base) == strlen(own_name) && memcmp(base, own_name, strlen(own_name)) == 0)
			return list;
	}
	return NULL;
}

/* Does this value have our library? Also true if no environment keeps us out. */
static bool is_preloaded(const char *list)
{
	size_t len;

	return !own_name || (list && find_preload(list, &len));
}

/* Does this value of LD_PRELOAD let the program's own loader choose the library for its machine (ld.so(8), $LIB)? */
static bool suits_all_machines(const char *list)
{
	size_t len = 0;
	const char *path = own_name && list ? find_preload(list, &len) : NULL;

	return path && memmem(path, len, "/$LIB/", strlen("/$LIB/"));
}

void children_init(const struct settings *settings, const char *path)
{
	const char *list = getenv("LD_PRELOAD");
	Dl_info info;

	if (path && *path == '/' && strlen(path) < sizeof(supervisor))
		strcpy(supervisor, path); /* programs that set their title overwrite the memory of their environment */
	children_are_watched = settings->enabled && (*supervisor || settings->log[0] || settings->warn);
	if (!list || !dladdr(&__ehdr_start, &info) || !info.dli_fname)
		return;
	/* If our name isn't there, /etc/ld.so.preload or the program's own linking loads us: no environment keeps us out. */
	own_name = program_base_name(info.dli_fname, strlen(info.dli_fname));
	if (!is_preloaded(list))
		own_name = NULL;
}

static const char *variable(char *const environment[], const char *start)
{
	for (; environment && *environment; environment++)
		if (strncmp(*environment, start, strlen(start)) == 0)
			return *environment + strlen(start);
	return NULL;
}

bool children_have_library(char *const environment[])
{
	return is_preloaded(variable(environment, PRELOAD));
}

/* Returns the problem of an environment with which a program can't be converted, or NULL. */
static const char *environment_problem(char *const environment[])
{
	const char *list = variable(environment, PRELOAD), *converter = variable(environment, CONVERTER);

	if (own_name && !list)
		return "is started without LD_PRELOAD";
	if (!is_preloaded(list))
		return "is started with another LD_PRELOAD, without libconvert.so";
	return converter && *converter ? NULL : "is started without CONVERT_ADDR";
}

static void facts_of_ourselves(struct elf_facts *out)
{
	out->is64 = __ehdr_start.e_ident[EI_CLASS] == ELFCLASS64;
	out->big_endian = __ehdr_start.e_ident[EI_DATA] == ELFDATA2MSB;
	out->machine = __ehdr_start.e_machine;
#ifdef __GLIBC__
	out->libc = ELF_LIBC_GLIBC;
#else
	out->libc = ELF_LIBC_MUSL;
#endif
}

static const char *path_of(const struct child *child, struct look *look)
{
	bool has_path = child->path && *child->path;

	if (has_path && (child->directory == AT_FDCWD || *child->path == '/'))
		return child->path;
	snprintf(look->path, sizeof(look->path), "/proc/self/fd/%d%s%.4000s", child->directory,
		 has_path ? "/" : "", has_path ? child->path : "");
	return look->path;
}

/* Can we read the library that LD_PRELOAD names? Not always in another root directory, a mount namespace or a sandbox. */
static bool library_is_there(struct look *look, const char *list)
{
	static const char token[] = "/$LIB/";
	size_t len = 0;
	const char *path = own_name && list ? find_preload(list, &len) : NULL, *found;
	int before, fd;

	if (!path || *path != '/' || len >= PATH_MAX)
		return true;
	found = memmem(path, len, token, strlen(token));
	before = (int)(found ? (size_t)(found - path) : len);
	if (found)
		snprintf(look->path, sizeof(look->path), "%.*s/" LIBCONVERT_LOADER_LIB "/%.*s", before, path,
			 (int)(len - (size_t)before - strlen(token)), found + strlen(token));
	else
		snprintf(look->path, sizeof(look->path), "%.*s", before, path);
	/* not access(2), which ignores Landlock */
	fd = open(look->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Judges the program, and logs one that nobody reaches. Returns whether to leave it to the supervisor. */
static bool judge(struct look *look, const struct child *child)
{
	struct preload_caller caller = {
		.uid = getuid(),
		.gid = getgid(),
		.no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1,
	};
	const char *path = path_of(child, look), *problem, *remedy;
	enum preload_verdict verdict;
	size_t index;

	/* exec(3) itself reports a program that can't be started */
	if (program_inspect_exec(&look->program, path, child->searched) < 0)
		return false;
	facts_of_ourselves(&look->library);
	verdict = preload_program_verdict(&look->program, &look->library, &caller, &index);
	remedy = preload_remedy(verdict);
	problem = environment_problem(child->environment);
	path = look->program.files[0].path;
	/* if the library for that machine is missing, its loader says so */
	if (verdict == PRELOAD_FOREIGN && suits_all_machines(variable(child->environment, PRELOAD)))
		verdict = PRELOAD_WORKS;
	if (*supervisor && !problem && child->directory == AT_FDCWD &&
	    preload_leaves_to_supervisor(verdict, &look->program.files[index].elf)) {
		if (access(supervisor, X_OK) == 0)
			return true;
		log_warning("%.150s: can't be converted: %s is started where convertize isn't, such as in another root directory or sandbox",
			    program_base_name(path, strlen(path)), path);
		return false;
	}
	if (!problem && preload_level(verdict) == PRELOAD_LEVEL_WORKS &&
	    !library_is_there(look, variable(child->environment, PRELOAD)))
		problem = "is started where libconvert.so isn't, such as in another root directory or sandbox";
	if (preload_level(verdict) == PRELOAD_LEVEL_REFUSED || verdict == PRELOAD_GO_WITH_C)
		log_warning("%.150s: can't be converted: %s%s%s", program_base_name(path, strlen(path)),
			    preload_describe(verdict, &look->program, index, &look->library, look->text),
			    remedy ? "; " : "", remedy ? remedy : "");
	else if (problem)
		log_warning("%.150s: can't be converted: %s %s", program_base_name(path, strlen(path)), path, problem);
	return false;
}

const char *children_look(const struct child *child)
{
	ERRNO_KEPT;
	bool left_to_supervisor = false;
	struct quiet quiet;
	struct look *look;

	/* A handler that leaves by siglongjmp(), or a cancellation in open(2), would leave the mapping behind. */
	quiet_all(&quiet);
	look = next_map(sizeof(*look));
	if (look) {
		left_to_supervisor = judge(look, child);
		next_unmap(look, sizeof(*look));
	}
	quiet_end(&quiet);
	return left_to_supervisor ? supervisor : NULL;
}
