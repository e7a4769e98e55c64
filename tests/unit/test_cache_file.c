/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_cache_file.c - the cache's file: made by many processes at once, another user's, inaccessible (damaged: test_cache_damage.c)
 *
 * Whatever is wrong with it, the worst consequence is that nothing is found; a signal would fail the test.
 */
#include "config.h"

#include "cache_fixture.h"
#include "run.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define NOBODY 65534

static void expect_error(int error)
{
	struct cache cache = { .file = (uint8_t *)1 };

	errno = 12345;
	ck_assert_int_eq(cache_open(&cache, directory), error);
	ck_assert_int_eq(errno, 12345);
	ck_assert(!cache_is_on(&cache));
	ck_assert_uint_gt(strlen(cache_problem(error)), 0);
}

START_TEST(no_directory)
{
	static const char *const none[] = { "tmp", "./", "/nonexistent/directory" };
	struct cache cache;

	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		ck_assert_int_eq(cache_open(&cache, none[i]), -ENOENT);
		ck_assert(!cache_is_on(&cache));
	}
	ck_assert_int_eq(cache_open(&cache, "/dev/null"), -ENOTDIR);
	/* words for what nobody has thought of, too */
	for (int error = 0; error < 200; error++)
		ck_assert_uint_gt(strlen(cache_problem(-error)), 0);
}
END_TEST

START_TEST(a_file_is_made_and_no_descriptor_kept)
{
	int before = dup(0), after;
	struct cache cache;
	struct stat st;

	umask(0777);
	cache = opened();
	after = dup(0);
	ck_assert_int_eq(after, before + 1);
	ck_assert_int_eq(stat(file, &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0600);
	ck_assert_int_eq(st.st_size, cache_file_size());
	ck_assert_int_eq(st.st_nlink, 1);
	ck_assert_uint_eq(files_in_directory(), 1);
	ck_assert_int_eq(put(&cache, 1), 0);
	cache_close(&cache);
	ck_assert(!cache_is_on(&cache));
}
END_TEST

/* A file that a killed process has left under the temporary name that this one would use. */
START_TEST(temporary_file_in_the_way)
{
	char name[sizeof(file) + 16];
	struct cache cache;
	int fd;

	snprintf(name, sizeof(name), "%s.%d", file, (int)getpid());
	fd = open(name, O_WRONLY | O_CREAT, 0600);
	ck_assert_int_ge(fd, 0);
	close(fd);
	cache = opened();
	ck_assert_uint_eq(files_in_directory(), 1);
	cache_close(&cache);
}
END_TEST

START_TEST(directory_of_others)
{
	struct cache cache;

	ck_assert_int_eq(chmod(directory, 0720), 0);
	expect_error(-EPERM);
	ck_assert_int_eq(chmod(directory, 0702), 0);
	expect_error(-EPERM);
	ck_assert_int_eq(chmod(directory, 0755), 0);
	cache = opened();
	cache_close(&cache);
	if (geteuid() != 0) {
		ck_assert_int_eq(cache_open(&cache, "/"), -EPERM);
	} else if (chown(directory, NOBODY, NOBODY) == 0) {
		expect_error(-EPERM);
		ck_assert_uint_eq(files_in_directory(), 1);
	}
}
END_TEST

START_TEST(file_of_others)
{
	static const mode_t modes[] = { 0640, 0620, 0604, 0602, 0677, 0400 };
	struct cache cache = opened();
	ino_t inode = file_inode();

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		ck_assert_int_eq(chmod(file, modes[i]), 0);
		if (modes[i] != 0400)
			expect_error(-EPERM);
		else if (geteuid() != 0)
			expect_error(-EACCES);
	}
	ck_assert_int_eq(chmod(file, 0600), 0);
	if (geteuid() == 0 && chown(file, NOBODY, NOBODY) == 0)
		expect_error(-EPERM);
	ck_assert_uint_eq(file_inode(), inode);
	cache_close(&cache);
}
END_TEST

static void make_link(void)
{
	ck_assert_int_eq(symlink("elsewhere", file), 0);
}

static void make_link_to_cache(void)
{
	char elsewhere[sizeof(file) + 16];
	struct cache cache = opened();

	cache_close(&cache);
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", directory);
	ck_assert_int_eq(rename(file, elsewhere), 0);
	make_link();
}

static void make_directory(void)
{
	ck_assert_int_eq(mkdir(file, 0700), 0);
}

static void make_fifo(void)
{
	ck_assert_int_eq(mkfifo(file, 0600), 0);
}

static void make_socket(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	ck_assert_uint_lt(strlen(file), sizeof(name.sun_path));
	strcpy(name.sun_path, file);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	close(fd);
}

static void (*const strangers[])(void) = { make_link, make_link_to_cache, make_directory, make_fifo,
					   make_socket };

START_TEST(something_else_has_the_name)
{
	struct stat before, after;
	unsigned int files;

	strangers[_i]();
	files = files_in_directory();
	ck_assert_int_eq(lstat(file, &before), 0);
	expect_error(-EEXIST);
	ck_assert_int_eq(lstat(file, &after), 0);
	ck_assert_uint_eq(before.st_ino, after.st_ino);
	ck_assert_uint_eq(files_in_directory(), files);
}
END_TEST

/* As nobody, since root may write everywhere. */
START_TEST(read_only_directory)
{
	struct cache cache;

	if (geteuid() == 0 && (chown(directory, NOBODY, NOBODY) < 0 || seteuid(NOBODY) < 0)) {
		test_skip("root can't become the user nobody");
		return;
	}
	ck_assert_int_eq(chmod(directory, 0500), 0);
	expect_error(-EACCES);
	ck_assert_int_eq(chmod(directory, 0700), 0);
	cache = opened();
	ck_assert_int_eq(chmod(directory, 0500), 0);
	cache_close(&cache);
	cache = opened(); /* it is there already */
	ck_assert_int_eq(put(&cache, 1), 0);
	cache_close(&cache);
	file_write("?", 1, 0);
	expect_error(-EACCES); /* and can't be replaced */
	ck_assert_int_eq(chmod(directory, 0700), 0);
	(void)!seteuid(getuid());
}
END_TEST

/* Processes that start together end up with the same file. */
START_TEST(many_make_it_at_once)
{
	enum { PROCESSES = 8 };
	int gate[2], status;
	struct cache cache;
	char end;

	ck_assert_int_eq(pipe(gate), 0);
	for (uint16_t i = 0; i < PROCESSES; i++) {
		if (fork())
			continue;
		close(gate[1]);
		(void)!read(gate[0], &end, 1); /* until all are there */
		_exit(-cache_open(&cache, directory) - put(&cache, i));
	}
	close(gate[0]);
	close(gate[1]);
	for (int i = 0; i < PROCESSES; i++) {
		ck_assert_int_gt(wait(&status), 0);
		ck_assert_int_eq(status, 0);
	}
	cache = opened();
	for (uint16_t i = 0; i < PROCESSES; i++)
		ck_assert(has(&cache, i));
	ck_assert_uint_eq(files_in_directory(), 1);
}
END_TEST

/* Is the cache's file in this process's memory? */
static bool is_mapped(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[PATH_MAX + 128];
	bool found = false;

	ck_assert_ptr_nonnull(maps);
	while (fgets(line, sizeof(line), maps))
		found |= strstr(line, CACHE_FILE) != NULL;
	fclose(maps);
	return found;
}

/* A daemon of root's that drops to another user, by a system call that no hook sees, has neither the cache nor the bytes within reach. */
START_TEST(process_that_may_change_its_user_has_no_mapping)
{
	struct cache cache;

	if (!test_is_root())
		return;
	cache = opened();
	ck_assert_int_eq(put(&cache, 1), 0);
	ck_assert(has(&cache, 1));
	ck_assert(!is_mapped());
	ck_assert_int_eq(syscall(SYS_setresuid, -1, SOMEBODY, -1), 0);
	ck_assert(!has(&cache, 1));
	ck_assert_int_eq(put(&cache, 2), -ENOENT);
	ck_assert_int_eq(syscall(SYS_setresuid, -1, 0, -1), 0);
	ck_assert(has(&cache, 1) && !has(&cache, 2));
	/* a directory that the other user may enter doesn't change that */
	ck_assert_int_eq(chmod(directory, 0711), 0);
	ck_assert_int_eq(syscall(SYS_setresuid, SOMEBODY, SOMEBODY, SOMEBODY), 0);
	ck_assert(!has(&cache, 1));
	ck_assert_int_eq(put(&cache, 1), -ENOENT);
	ck_assert(!is_mapped());
}
END_TEST

/* A process that runs only our code keeps the file open, whatever becomes of the file's name, until the file is cut. */
START_TEST(a_process_of_ours_keeps_the_file_open)
{
	struct cache cache;

	thread_process_is_ours = true;
	cache = opened();
	ck_assert_int_eq(unlink(file), 0);
	ck_assert_int_eq(put(&cache, 1), 0);
	ck_assert(has(&cache, 1));
	ck_assert(!is_mapped());
	ck_assert_int_eq(ftruncate(cache.kept_fd, 0), 0);
	ck_assert(!has(&cache, 1));
	ck_assert_int_eq(put(&cache, 1), -EFAULT);
	cache_close(&cache);
	thread_process_is_ours = false;
}
END_TEST

/* A program without standard streams keeps the file open as well, and not in place of one. */
START_TEST(a_file_that_is_kept_is_no_standard_stream)
{
	const int input = dup(STDIN_FILENO), opened_before = open(directory, O_PATH | O_CLOEXEC);
	struct cache cache = { 0 };

	thread_process_is_ours = true;
	close(STDIN_FILENO);
	ck_assert_int_eq(cache_open_at(&cache, opened_before, directory), 0);
	ck_assert_int_gt(cache.kept_fd, STDERR_FILENO);
	ck_assert_int_eq(fcntl(STDIN_FILENO, F_GETFD), -1);
	ck_assert_int_eq(put(&cache, 1), 0);
	ck_assert(has(&cache, 1));
	cache_close(&cache);
	dup2(input, STDIN_FILENO);
	close(input);
	close(opened_before);
	thread_process_is_ours = false;
}
END_TEST

/* In a user namespace a process without rights may become another user: the next call, or cache_check_identity(), removes the mapping. */
START_TEST(a_mapping_goes_with_its_user)
{
	struct cache cache = opened();

	ck_assert_int_eq(put(&cache, 1), 0);
	ck_assert_ptr_nonnull(cache.file);
	if (unshare(CLONE_NEWUSER) < 0) {
		test_skip("an ordinary user may make no user namespace");
		return;
	}
	ck_assert(is_mapped());
	if (_i)
		cache_check_identity(&cache);
	else
		ck_assert(!has(&cache, 1));
	ck_assert(!is_mapped());
	ck_assert(!has(&cache, 1));
	ck_assert_int_lt(put(&cache, 1), 0);
	cache_close(&cache);
}
END_TEST

static bool proc_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

/* A user namespace with this user and group in it. */
static bool own_namespace(void)
{
	char users[64], groups[64];

	snprintf(users, sizeof(users), "%u %u 1", geteuid(), geteuid());
	snprintf(groups, sizeof(groups), "%u %u 1", getegid(), getegid());
	return unshare(CLONE_NEWUSER) == 0 && proc_write("/proc/self/setgroups", "deny") &&
	       proc_write("/proc/self/uid_map", users) && proc_write("/proc/self/gid_map", groups);
}

/* Mounts a tmpfs of a few pages in a mount namespace; returns false where this process has no right to. */
static bool mount_small(const char *where)
{
	return (geteuid() == 0 || own_namespace()) && unshare(CLONE_NEWNS) == 0 &&
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("tmpfs", where, "tmpfs", 0, "size=16384,mode=700") == 0;
}

/* A page for which the tmpfs has no room would be another SIGBUS upon a direct access. */
START_TEST(file_system_is_full)
{
	char filler[PATH_MAX + 16], page[4096] = "";
	struct cache cache;
	int fd, written = 0;

	if (!mount_small(directory)) {
		test_skip(geteuid() == 0 ? "root may not mount a tmpfs" : "an ordinary user may not mount a tmpfs in a user namespace");
		return;
	}
	snprintf(filler, sizeof(filler), "%s/filler", directory);
	fd = open(filler, O_WRONLY | O_CREAT, 0600);
	while (write(fd, page, sizeof(page)) > 0)
		written++;
	ck_assert_int_gt(written, 1);
	expect_error(-ENOSPC);
	ck_assert_uint_eq(files_in_directory(), 1);
	ck_assert_int_eq(ftruncate(fd, (written - 1) * (off_t)sizeof(page)), 0);
	cache = opened(); /* the header takes the last page */
	ck_assert(!has(&cache, 1));
	ck_assert_int_eq(put(&cache, 1), cache.file ? -EFAULT : -ENOSPC);
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	ck_assert_int_eq(put(&cache, 1), 0);
	ck_assert(has(&cache, 1));
	umount2(directory, MNT_DETACH);
}
END_TEST

/* Has process_vm_readv() and process_vm_writev() fail with EPERM from now on, as in some sandboxes. */
static bool forbid_copies(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_SIZE(filter), filter };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

START_TEST(sandbox)
{
	struct cache cache = opened();

	ck_assert_int_eq(put(&cache, 1), 0);
	ck_assert_ptr_nonnull(cache.file);
	if (!forbid_copies()) {
		test_skip("the kernel has no seccomp filters");
		return;
	}
	ck_assert(!has(&cache, 1));
	ck_assert_int_eq(put(&cache, 1), -EPERM);
	cache_close(&cache);
	expect_error(-ENOSYS);
}
END_TEST

static void tests_add(TCase *tcase, SFun setup_function)
{
	tcase_add_checked_fixture(tcase, setup_function, teardown);
	tcase_add_test(tcase, no_directory);
	tcase_add_test(tcase, a_file_is_made_and_no_descriptor_kept);
	tcase_add_test(tcase, temporary_file_in_the_way);
	tcase_add_test(tcase, directory_of_others);
	tcase_add_test(tcase, file_of_others);
	tcase_add_loop_test(tcase, something_else_has_the_name, 0, (int)ARRAY_SIZE(strangers));
	tcase_add_test(tcase, read_only_directory);
	tcase_add_loop_test(tcase, many_make_it_at_once, 0, 10);
	tcase_add_test(tcase, file_system_is_full);
	tcase_add_test(tcase, a_process_of_ours_keeps_the_file_open);
	tcase_add_test(tcase, a_file_that_is_kept_is_no_standard_stream);
}

int main(void)
{
	Suite *suite = suite_create("cache_file");
	TCase *tcase = tcase_create("file");

	tests_add(tcase, setup);
	tcase_add_test(tcase, process_that_may_change_its_user_has_no_mapping);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("without_rights");
	tests_add(tcase, setup_without_rights);
	/* these have a mapping, which a process with rights hasn't */
	tcase_add_test(tcase, sandbox);
	tcase_add_loop_test(tcase, a_mapping_goes_with_its_user, 0, 2);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
