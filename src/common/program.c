/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * program.c - finds the files that execute a command, and their properties
 *
 * The shim uses this in a child of vfork(): nothing here allocates, or keeps anything.
 */
#include "config.h"

#include "common/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

/* --- the #! line of a script, which names its interpreter --- */

#define BLANKS " \t"

bool script_parse(struct script *out, const char *text, size_t len)
{
	char line[SCRIPT_LINE_MAX];
	char *at, *end;

	if (len < 2 || text[0] != '#' || text[1] != '!')
		return false;
	len = len - 2 < sizeof(line) - 1 ? len - 2 : sizeof(line) - 1;
	memcpy(line, text + 2, len);
	line[len] = '\0';
	line[strcspn(line, "\n")] = '\0';
	end = line + strlen(line);
	while (end > line && strchr(BLANKS, end[-1]))
		*--end = '\0';
	at = line + strspn(line, BLANKS);
	if (!*at)
		return false;
	memset(out, 0, sizeof(*out));
	len = strcspn(at, BLANKS);
	memcpy(out->interpreter, at, len);
	at += len;
	at += strspn(at, BLANKS);
	strcpy(out->argument, at);
	return true;
}

/* Reads the word at *@at, and moves *@at behind it; returns false if there is none. */
static bool next_word(const char **at, char out[static SCRIPT_LINE_MAX])
{
	const char *start = *at + strspn(*at, BLANKS);
	size_t len = strcspn(start, BLANKS);

	if (!len || len >= SCRIPT_LINE_MAX)
		return false;
	memcpy(out, start, len);
	out[len] = '\0';
	*at = start + len;
	return true;
}

bool script_env_program(const char *argument, char out[static SCRIPT_LINE_MAX])
{
	static const char *const split[] = { "--split-string=", "--split-string", "-vS", "-S" };
	size_t len = 0;

	for (size_t i = 0; i < sizeof(split) / sizeof(split[0]) && !len; i++)
		if (strncmp(argument, split[i], strlen(split[i])) == 0)
			len = strlen(split[i]);
	if (!len) {
		/* the kernel passes one argument; env without -S takes all of it, with its blanks, for a name */
		if (!*argument || *argument == '-' || strlen(argument) >= SCRIPT_LINE_MAX)
			return false;
		strcpy(out, argument);
		return true;
	}
	argument += len;
	while (next_word(&argument, out))
		if (*out != '-' && !strchr(out, '='))
			return true;
	return false;
}

#define PATH_DEFAULT "/bin:/usr/bin" /* the default of execvp(3) without PATH */

/* Can execve(2) execute the file? Returns 0, -EACCES or another -errno. */
static int check_executable(const char *path)
{
	struct stat status;

	if (stat(path, &status) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode))
		return -EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 ? 0 : -errno;
}

/*
 * Finds the file of a command: in PATH if it is @searched and has no slash. Skips directories of PATH that can't be searched, as execvp(3)
 * does.
 */
static int find(const char *command, bool searched, char path[static PATH_MAX])
{
	const bool is_bare = *command && !strchr(command, '/');
	const char *places = getenv("PATH");
	int found = -ENOENT;

	if (!is_bare || !searched) {
		if (snprintf(path, PATH_MAX, "%s%s", is_bare ? "./" : "", command) >= PATH_MAX)
			return -ENAMETOOLONG;
		return check_executable(path);
	}
	for (places = places ? places : PATH_DEFAULT;; places++) {
		size_t len = strcspn(places, ":");
		int ret = -ENAMETOOLONG;

		if (snprintf(path, PATH_MAX, "%.*s%s%s", (int)len, places, len ? "/" : "./",
			     command) < PATH_MAX)
			ret = check_executable(path);
		if (ret == 0)
			return 0;
		/* EACCES counts if the file is there, but not if only its directory is closed to us */
		if (ret == -EACCES && access(path, F_OK) == 0)
			found = ret;
		places += len;
		if (!*places)
			return found;
	}
}

static bool file_read(void *source, uint64_t offset, void *out, size_t len)
{
	const int *fd = source;
	uint8_t *at = out;

	if (offset > (uint64_t)INT64_MAX - len)
		return false;
	while (len > 0) {
		ssize_t got = pread(*fd, at, len, (off_t)offset);

		if (got <= 0)
			return false;
		at += got;
		offset += (uint64_t)got;
		len -= (size_t)got;
	}
	return true;
}

int program_read_elf(struct elf_facts *out, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	int ret;

	if (fd < 0)
		return -errno;
	ret = elf_inspect(out, file_read, &fd);
	close(fd);
	return ret;
}

static bool read_script(struct script *out, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	char text[SCRIPT_LINE_MAX];
	ssize_t len;

	if (fd < 0)
		return false;
	len = pread(fd, text, sizeof(text), 0);
	close(fd);
	return len > 0 && script_parse(out, text, (size_t)len);
}

static enum program_kind read_kind(struct program_file *file)
{
	switch (program_read_elf(&file->elf, file->path)) {
	case 0:
		return PROGRAM_ELF;
	case -ENOEXEC:
		return read_script(&file->script, file->path) ? PROGRAM_SCRIPT : PROGRAM_OTHER;
	case -EBADMSG:
		return PROGRAM_DAMAGED;
	default:
		return PROGRAM_UNREADABLE;
	}
}

/* Fills in all about the file at file->path. Returns 0 or -errno. */
static int inspect_file(struct program_file *file)
{
	struct statvfs mount;
	struct stat status;

	if (stat(file->path, &status) < 0)
		return -errno;
	file->uid = status.st_uid;
	file->gid = status.st_gid;
	file->mode = status.st_mode;
	file->nosuid = statvfs(file->path, &mount) == 0 && mount.f_flag & ST_NOSUID;
	file->capabilities = getxattr(file->path, "security.capability", NULL, 0) > 0;
	file->kind = read_kind(file);
	file->interpreter_missing =
		(file->kind == PROGRAM_ELF && file->elf.loader[0] &&
		 access(file->elf.loader, F_OK) < 0) ||
		(file->kind == PROGRAM_SCRIPT && access(file->script.interpreter, F_OK) < 0);
	return 0;
}

static int add_file(struct program *out, const char *path)
{
	struct program_file *file = &out->files[out->count];
	int ret;

	memset(file, 0, sizeof(*file));
	snprintf(file->path, sizeof(file->path), "%s", path);
	ret = inspect_file(file);
	if (ret == 0)
		out->count++;
	return ret;
}

/* Inspects all files of a command. @path: the command's file; overwritten. @ret: 0, or why there is none. */
static int inspect(struct program *out, char path[static PATH_MAX], bool env_too, int ret)
{
	char wanted[SCRIPT_LINE_MAX];

	out->count = 0;
	while (ret == 0 && out->count < PROGRAM_FILES_MAX - 1) {
		const struct program_file *file = &out->files[out->count];
		const struct script *script = &file->script;

		ret = add_file(out, path);
		if (ret < 0 || file->kind != PROGRAM_SCRIPT || file->interpreter_missing)
			break;
		strcpy(path, script->interpreter);
		if (!env_too || strcmp(program_base_name(path, strlen(path)), "env") != 0 || !script_env_program(script->argument, wanted))
			continue;
		/* env starts another program; if it doesn't find that, env itself reports it */
		if (add_file(out, path) < 0 || find(wanted, true, path) < 0)
			break;
	}
	return out->count ? 0 : ret;
}

int program_inspect(struct program *out, const char *command)
{
	char path[PATH_MAX];

	return inspect(out, path, true, find(command, true, path));
}

int program_inspect_exec(struct program *out, const char *command, bool searched)
{
	char path[PATH_MAX];

	return inspect(out, path, false, find(command, searched, path));
}
