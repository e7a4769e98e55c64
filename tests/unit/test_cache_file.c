/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_cache_file.c - the cache's file: made by many processes at once, damaged, cut short, another user's, inaccessible
 *
 * Whatever is wrong with it, the worst consequence is that nothing is found; a signal would fail the test.
 */
#include "config.h"

#include "client/cache.h"
#include "client/cache_file.h"

#include "run.h"
#include "tempdir.h"

#include <check.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define NOW INT64_C(1000000)
#define LATER (NOW + 60000)
#define NOBODY 65534
#define SOMEBODY 4711 /* has no rights, so that the file is mapped */

static char directory[PATH_MAX], file[PATH_MAX + sizeof("/" CACHE_FILE)];

static void setup(void)
{
	tempdir_make(directory);
	snprintf(file, sizeof(file), "%s/" CACHE_FILE, directory);
}

/* The same for a process that can't change its identity, if this one may become one. */
static void setup_without_rights(void)
{
	setup();
	if (geteuid() == 0)
		ck_assert(chown(directory, SOMEBODY, SOMEBODY) == 0 && setresgid(SOMEBODY, SOMEBODY, SOMEBODY) == 0 &&
			  setresuid(SOMEBODY, SOMEBODY, SOMEBODY) == 0);
	prctl(PR_SET_DUMPABLE, 1); /* else /proc/self is root's */
}

static void teardown(void)
{
	tempdir_remove(directory);
}

static union sockaddr_ip address(uint16_t port)
{
	union sockaddr_ip addr;

	ck_assert_int_eq(sockaddr_ip_parse(&addr, "192.0.2.1", port), 0);
	return addr;
}

static int put(const struct cache *cache, uint16_t port)
{
	union sockaddr_ip addr = address(port);

	return cache_answer_put(cache, &addr, 0, CACHE_YES, NOW, LATER);
}

static bool has(const struct cache *cache, uint16_t port)
{
	union sockaddr_ip addr = address(port);

	return cache_answer_get(cache, &addr, 0, NOW) == CACHE_YES;
}

static struct cache opened(void)
{
	struct cache cache;

	ck_assert_int_eq(cache_open(&cache, directory), 0);
	return cache;
}

static void file_write(const void *bytes, size_t len, off_t at)
{
	int fd = open(file, O_WRONLY | O_CREAT, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, bytes, len, at), (ssize_t)len);
	close(fd);
}

static ino_t file_inode(void)
{
	struct stat st;

	ck_assert_int_eq(lstat(file, &st), 0);
	return st.st_ino;
}

static unsigned int files_in_directory(void)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;
	unsigned int count = 0;

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

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
	static const char *const none[] = { NULL, "", "tmp", "./", "/nonexistent/directory" };
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

	if (geteuid() == 0 && (chown(directory, NOBODY, NOBODY) < 0 || seteuid(NOBODY) < 0))
		return;
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

/* A damaged file is replaced; processes that have the old one mapped keep that. */
START_TEST(every_byte_of_the_header)
{
	struct cache_header header;
	int fd;

	opened();
	fd = open(file, O_RDONLY);
	ck_assert_int_eq(pread(fd, &header, sizeof(header), 0), (ssize_t)sizeof(header));
	close(fd);
	for (size_t at = 0; at < sizeof(header); at++) {
		struct cache old = opened(), new;
		uint8_t byte = (uint8_t)(((uint8_t *)&header)[at] ^ (1u << (at % 8)));
		uint16_t one = (uint16_t)(3 * at), two = one + 1, three = one + 2;
		ino_t inode = file_inode();

		ck_assert_int_eq(put(&old, one), 0);
		file_write(&byte, 1, (off_t)at);
		new = opened();
		ck_assert_uint_ne(file_inode(), inode);
		ck_assert(!has(&new, one));
		ck_assert_int_eq(put(&new, two), 0);
		ck_assert(has(&new, two));
		if (old.file) {
			ck_assert(has(&old, one) && !has(&old, two));
			ck_assert_int_eq(put(&old, three), 0);
			ck_assert(has(&old, three) && !has(&new, three));
		} else { /* the file is opened each time: it is the new one */
			ck_assert(!has(&old, one) && has(&old, two));
		}
		cache_close(&old);
		cache_close(&new);
	}
	ck_assert_uint_eq(files_in_directory(), 1);
}
END_TEST

/* The file is cut at every length of the header's page; beyond that page, only its size matters. */
START_TEST(every_length_before_opening)
{
	for (off_t len = 0; len < (off_t)cache_file_size(); len += len < 4200 ? 1 : 97) {
		struct cache cache = opened();

		ck_assert_int_eq(put(&cache, 1), 0);
		cache_close(&cache);
		ck_assert_int_eq(truncate(file, len), 0);
		cache = opened();
		ck_assert(!has(&cache, 1));
		ck_assert_int_eq(put(&cache, 2), 0);
		ck_assert(has(&cache, 2));
		cache_close(&cache);
	}
	ck_assert_int_eq(truncate(file, cache_file_size() + 1), 0);
	opened();
	ck_assert_uint_eq(files_in_directory(), 1);
}
END_TEST

/* Cut while it is mapped, where a direct access would raise SIGBUS. */
START_TEST(every_length_while_mapped)
{
	union sockaddr_ip addr = address(1);
	struct cache_converter facts = { .rest.until = LATER,
					 .cookie = { .until = LATER, .len = CACHE_COOKIE_MAX } };
	struct cache cache = opened(), another;
	bool cookie = true, server = true, rest = true;

	put(&cache, 1);
	cache_converter_update(&cache, &addr, 0, CACHE_REST | CACHE_COOKIE, NOW, &facts);
	for (off_t len = cache_file_size(); len >= 0; len -= len % 8 ? 1 : 7) {
		unsigned int found;

		ck_assert_int_eq(truncate(file, len), 0);
		found = cache_converter_get(&cache, &addr, 0, CACHE_FACTS_ALL, NOW, &facts);
		/* once lost it doesn't come back */
		ck_assert(cookie || !(found & CACHE_COOKIE));
		ck_assert(rest || !(found & CACHE_REST));
		ck_assert(server || !has(&cache, 1));
		cookie = found & CACHE_COOKIE;
		rest = found & CACHE_REST;
		server = has(&cache, 1);
	}
	ck_assert(!cookie && !rest && !server);
	ck_assert_int_eq(put(&cache, 1), -EFAULT);
	ck_assert(!has(&cache, 1));
	/* who comes later starts anew */
	another = opened();
	put(&another, 2);
	cache_close(&another);
	ck_assert_int_eq(has(&cache, 2), !cache.file); /* unless this one opens the file each time */
	cache_close(&cache);
}
END_TEST

/* Returns the offset in the file of the record for @kind, which is the only one in its bucket. */
static off_t record_offset(enum cache_kind kind)
{
	union sockaddr_ip addr = address(1);
	struct cache_key key;
	off_t offset;

	ck_assert(cache_key_set(&key, kind, &addr, 0, 0));
	offset = cache_bucket_offset(&key);
	/* the facts are in one bucket, in the order in which they were noted */
	if (kind >= CACHE_KIND_REST && kind <= CACHE_KIND_INFO)
		offset += (kind - CACHE_KIND_REST) * (off_t)cache_table_of(kind)->record_size;
	else if (kind >= CACHE_KIND_MPTCP && kind <= CACHE_KIND_PATH)
		offset += (2 + (kind - CACHE_KIND_MPTCP)) * (off_t)cache_table_of(kind)->record_size;
	return offset;
}

static bool is_known(const struct cache *cache, enum cache_kind kind)
{
	static const unsigned int facts[] = { [CACHE_KIND_REST] = CACHE_REST,
					      [CACHE_KIND_INFO] = CACHE_INFO,
					      [CACHE_KIND_COOKIE] = CACHE_COOKIE,
					      [CACHE_KIND_MPTCP] = CACHE_MPTCP,
					      [CACHE_KIND_SILENCE] = CACHE_SILENCE,
					      [CACHE_KIND_PATH] = CACHE_PATH };
	union sockaddr_ip addr = address(1);
	struct cache_converter out;

	return kind == CACHE_KIND_ANSWER ?
		       has(cache, 1) :
		       cache_converter_get(cache, &addr, 0, facts[kind], NOW, &out) != 0;
}

static void note_everything(const struct cache *cache)
{
	union sockaddr_ip addr = address(1);
	struct cache_converter facts = { .rest.until = LATER,
					 .info = { .until = LATER, .count = 1, .kinds = { 30 } },
					 .cookie = { .until = LATER, .len = 16 },
					 .mptcp = { .until = LATER, .verdict = CACHE_MPTCP_LOST },
					 .silence = { .until = LATER, .destinations = 1 },
					 .path = { .until = LATER, .state = CACHE_PATH_LOSES } };

	ck_assert_int_eq(cache_converter_update(cache, &addr, 0, CACHE_FACTS_ALL, NOW, &facts), 0);
	ck_assert_int_eq(put(cache, 1), 0);
}

/* A record with any byte damaged isn't found until it is written again. */
START_TEST(every_byte_of_a_record)
{
	enum cache_kind kind = (enum cache_kind)_i;
	size_t size = cache_table_of(kind)->record_size;
	unsigned int step = kind == CACHE_KIND_COOKIE ? 51 : 1;
	struct cache cache = opened();
	int fd = open(file, O_RDWR);
	off_t offset = record_offset(kind);
	uint8_t record[2048], byte;

	note_everything(&cache);
	ck_assert_int_eq(pread(fd, record, size, offset), (ssize_t)size);
	for (size_t at = 0; at < size; at++) {
		for (unsigned int change = 1; change < 256; change += step) {
			byte = (uint8_t)(record[at] ^ change);
			ck_assert_int_eq(pwrite(fd, &byte, 1, offset + (off_t)at), 1);
			ck_assert(!is_known(&cache, kind));
		}
		note_everything(&cache);
		ck_assert(is_known(&cache, kind));
		ck_assert_int_eq(pwrite(fd, record, size, offset), (ssize_t)size);
	}
	ck_assert(is_known(&cache, kind));
	close(fd);
	cache_close(&cache);
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
START_TEST(whoever_may_change_the_user_has_no_mapping)
{
	struct cache cache;

	if (geteuid() != 0)
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

/* A process of ours alone opens the file once: it goes on with it, whatever becomes of the file's name, until the file is cut. */
START_TEST(a_process_of_ours_keeps_the_file_open)
{
	struct cache cache;

	thread_process_is_ours = true;
	cache = opened();
	ck_assert_int_eq(unlink(file), 0);
	ck_assert_int_eq(put(&cache, 1), 0);
	ck_assert(has(&cache, 1));
	ck_assert(!is_mapped());
	ck_assert_int_eq(ftruncate(cache.kept, 0), 0);
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
	ck_assert_int_gt(cache.kept, STDERR_FILENO);
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
	if (!cache.file || unshare(CLONE_NEWUSER) < 0)
		return;
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

	if (!mount_small(directory))
		return;
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
	if (!cache.file || !forbid_copies())
		return;
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
	tcase_add_test(tcase, every_byte_of_the_header);
	tcase_add_test(tcase, every_length_before_opening);
	tcase_add_test(tcase, every_length_while_mapped);
	tcase_add_loop_test(tcase, every_byte_of_a_record, CACHE_KIND_REST, CACHE_KIND_NOTE);
	tcase_add_loop_test(tcase, many_make_it_at_once, 0, 10);
	tcase_add_test(tcase, file_system_is_full);
	tcase_add_test(tcase, sandbox);
	tcase_add_test(tcase, whoever_may_change_the_user_has_no_mapping);
	tcase_add_test(tcase, a_process_of_ours_keeps_the_file_open);
	tcase_add_test(tcase, a_file_that_is_kept_is_no_standard_stream);
	tcase_add_loop_test(tcase, a_mapping_goes_with_its_user, 0, 2);
}

int main(void)
{
	Suite *suite = suite_create("cache_file");
	TCase *tcase = tcase_create("file");

	tests_add(tcase, setup);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("without_rights");
	tests_add(tcase, setup_without_rights);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
