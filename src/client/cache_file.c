/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cache_file.c - the cache's file: how processes create, open and access it, and its records
 *
 * Creation. A process that can write the file can mislead its readers, so this user alone must own the file and its directory
 * (user_cache.c). We never touch a file that has our name and isn't ours. The header must be the one that this process would write itself.
 * We never repair a file of ours whose header differs (damaged, truncated, another boot's), since other processes may have mapped it: we
 * rename a new one over it. A new file gets its name when it is complete, so that no process sees half of one. If there was no file,
 * link(2) gives the name: one of several processes wins, and all open the name again. If two replace a file at the same time, one of them
 * may use its own file alone until it ends. A process that is killed meanwhile leaves a file CACHE_FILE.N of a page.
 *
 * Mapped. The process maps the file and closes the descriptor. No instruction accesses the mapping: process_vm_readv(2) and
 * process_vm_writev(2), called for this process itself, copy from and to it. They return EFAULT for a page that is gone (the file was
 * truncated) or unavailable (its file system is full), where an instruction would get SIGBUS. The kernel asks no permission for the own
 * memory, however ptrace(2) is restricted.
 *
 * Opened. A mapping survives a change of the process's user, and no hook of ours sees the new user's code access the process's memory. So a
 * process that may change its user (root, or one with a capability or another saved user) has no mapping: each call opens the file, checks
 * that this user owns it, and closes it, with signals blocked. The call needn't check the header, since each record has its checksum. A
 * process that has changed its user, its root or its sandbox has no cache. Processes that can't change their user don't work this way,
 * because the descriptor exists for a moment, and an application that closes a descriptor twice could close this one and open it as its
 * own. A process without rights can change its user by a user namespace. The next call, or cache_check_identity(), notices this and
 * replaces the mapping by an empty page without rights; a call in another thread then fails.
 *
 * Kept open. A process of ours alone (thread_process_is_ours) keeps the descriptor, and reads and writes by it.
 *
 * Measured with Linux 6.18 on x86-64 and tmpfs, in µs; a connect() makes a few of these calls at most:
 *
 *	a bucket read, or a record written, by process_vm_readv()             1.3
 *	open, fstat, pread, close at each call                                3.3
 *	pread or pwrite with a descriptor that is kept                        0.4
 *
 * Records. A place in the file is free, or has a whole record, or has neither (a writer is half done, two write at once, a writer was
 * killed between two pages, foreign bytes). A checksum of 64 bits reveals this: a reader reads again, in case a writer is half done, and
 * then considers the place free. The checksum replaces a lock and a sequence counter: a writer copies a whole record at once, and doesn't
 * depend on the place's previous content. Each fact is a record of its own, so that processes which learn different facts about one
 * converter don't overwrite each other's; of those that learn the same fact, one wins.
 *
 * A record may be in any place of its bucket. A writer chooses the place with its key; else one that is free or whose record has ended;
 * else the oldest. If two writers choose the same place, a hint is lost. If two write a new key to two places, readers take the younger,
 * and the next write erases the other.
 *
 * Limits: a process whose file was truncated has no cache until it ends. Any file system serves, but ext4 should be of Linux 5.18 or a
 * stable kernel since: older ones don't expect mapped pages to be written in this way.
 */
#include "config.h"

#include "client/cache_file.h"

#include "common/file_limit.h"
#include "common/rawcall.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define LAYOUT 3     /* change it, and CACHE_FILE, whenever the file's layout changes */
#define READS_MAX 4  /* of a record that isn't whole */
#define ATTEMPTS 4   /* each fails only if another process makes or replaces the file meanwhile */
#define OPEN_FLAGS (O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) /* O_NONBLOCK: open() never waits, whatever the file is */

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define SIZE_UP_TO(member)                                                                         \
	(offsetof(struct cache_record, value) +                                                    \
	 sizeof(((const union cache_value *)NULL)->member))

/* 32-bit and 64-bit processes share a file: no padding, whatever the alignment of 64-bit integers. */
static_assert(offsetof(struct cache_record, key) == 24, "no padding");
static_assert(offsetof(struct cache_record, value) == 56, "no padding");
static_assert(sizeof(struct cache_record) == 56 + 1000, "no padding");
static_assert(sizeof(struct cache_header) == 64, "no padding");

/* Room for 1024 answers, 256 facts about converters, 32 cookies, 2048 connections. The file has holes until they are used. */
#define ANSWER_SIZE 64u
#define FACT_SIZE 96u
#define COOKIE_SIZE 1056u
#define NOTE_SIZE 168u
#define NOTE_LIFETIME_MAX (30 * CACHE_LIFETIME_MAX) /* connections last longer than hints hold */
static_assert(SIZE_UP_TO(answer) <= ANSWER_SIZE, "an answer fits");
static_assert(SIZE_UP_TO(info) <= FACT_SIZE && SIZE_UP_TO(silence) <= FACT_SIZE && SIZE_UP_TO(path) <= FACT_SIZE, "a fact fits");
static_assert(SIZE_UP_TO(cookie) <= COOKIE_SIZE, "a cookie fits");
static_assert(SIZE_UP_TO(note) <= NOTE_SIZE, "a note fits");
static_assert(2 * COOKIE_SIZE <= CACHE_BUCKET_MAX, "the longest bucket");

enum { ANSWERS, FACTS, COOKIES, NOTES };
static const struct cache_table tables[] = {
	[ANSWERS] = { CACHE_TABLES_OFFSET, 128, 8, ANSWER_SIZE },
	[FACTS] = { CACHE_TABLES_OFFSET + 128 * 8 * ANSWER_SIZE, 32, 8, FACT_SIZE },
	[COOKIES] = { CACHE_TABLES_OFFSET + 128 * 8 * ANSWER_SIZE + 32 * 8 * FACT_SIZE, 16, 2,
		      COOKIE_SIZE },
	[NOTES] = { CACHE_TABLES_OFFSET + 128 * 8 * ANSWER_SIZE + 32 * 8 * FACT_SIZE + 16 * 2 * COOKIE_SIZE, 256, 8, NOTE_SIZE },
};

/* --- records --- */

uint32_t cache_file_size(void)
{
	const struct cache_table *last = &tables[NOTES];

	return last->offset + last->buckets * last->ways * last->record_size;
}

bool cache_key_set(struct cache_key *out, enum cache_kind kind, const union sockaddr_ip *address, uint64_t network, uint64_t origin)
{
	struct in6_addr in6;

	memset(out, 0, sizeof(*out));
	if (address->sa.sa_family != AF_INET && address->sa.sa_family != AF_INET6)
		return false;
	in6 = sockaddr_ip_in6(address);
	memcpy(out->address, &in6, sizeof(out->address));
	out->port = sockaddr_ip_port(address);
	out->kind = (uint8_t)kind;
	out->network = (uint32_t)(network * UINT64_C(0x9e3779b97f4a7c15) >> 32);
	out->origin = kind == CACHE_KIND_PATH || kind == CACHE_KIND_MPTCP || kind == CACHE_KIND_ANSWER ? origin : 0;
	return true;
}

const struct cache_table *cache_table_of(enum cache_kind kind)
{
	return &tables[kind == CACHE_KIND_COOKIE ? COOKIES : kind == CACHE_KIND_ANSWER ? ANSWERS : kind == CACHE_KIND_NOTE ? NOTES : FACTS];
}

/*
 * Each step is a bijection of the state, so two inputs of one length that differ in one word never have the same hash: the hash always
 * reveals a single damaged byte.
 */
static uint64_t hash(uint64_t state, const void *data, size_t len)
{
	const uint8_t *bytes = data;
	uint64_t word;

	for (; len >= sizeof(word); bytes += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		state = (state ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		state = (state ^ state >> 32) * UINT64_C(0xd6e8feb86659fd93);
	}
	return state;
}

uint32_t cache_bucket_offset(const struct cache_key *key)
{
	const struct cache_table *table = cache_table_of((enum cache_kind)key->kind);
	uint64_t state = hash(key->port ^ (uint64_t)key->network << 16, key->address, sizeof(key->address));
	uint32_t bucket = (uint32_t)(state >> 32) & (table->buckets - 1);

	return table->offset + bucket * table->ways * table->record_size;
}

static uint64_t checksum_of(const struct cache_record *record, const struct cache_table *table)
{
	const size_t start = sizeof(record->checksum);

	return hash(LAYOUT, (const uint8_t *)record + start, table->record_size - start);
}

void cache_record_seal(struct cache_record *record)
{
	record->checksum = checksum_of(record, cache_table_of((enum cache_kind)record->key.kind));
}

bool cache_record_is_whole(const struct cache_record *record, const struct cache_table *table)
{
	uint8_t kind = record->key.kind;

	return kind > CACHE_KIND_NONE && kind < CACHE_KIND_COUNT &&
	       cache_table_of((enum cache_kind)kind) == table &&
	       record->checksum == checksum_of(record, table);
}

bool cache_value_is_valid(enum cache_kind kind, const union cache_value *value)
{
	switch (kind) {
	case CACHE_KIND_INFO:
		return value->info.count <= CACHE_KINDS_MAX && !memchr(value->info.kinds, 0, value->info.count);
	case CACHE_KIND_COOKIE:
		return value->cookie.len > 0 && value->cookie.len <= CACHE_COOKIE_MAX;
	case CACHE_KIND_ANSWER:
		return value->answer.verdict > CACHE_UNKNOWN && value->answer.verdict < CACHE_ANSWER_COUNT;
	case CACHE_KIND_MPTCP:
		return value->mptcp.verdict > CACHE_MPTCP_UNKNOWN && value->mptcp.verdict < CACHE_MPTCP_COUNT;
	case CACHE_KIND_SILENCE:
		return value->silence.destinations > 0;
	case CACHE_KIND_PATH:
		return value->path.state > CACHE_PATH_UNKNOWN && value->path.state < CACHE_PATH_COUNT && value->path.asked <= INT64_MAX;
	case CACHE_KIND_NOTE:
		return memchr(value->note.reason, '\0', sizeof(value->note.reason));
	default:
		return true;
	}
}

/* For how long a record of this kind may hold, in ms. */
static int64_t lifetime_max(uint8_t kind)
{
	return kind == CACHE_KIND_NOTE ? NOTE_LIFETIME_MAX : CACHE_LIFETIME_MAX;
}

/* Is the record whole, with its times and its value in range at @now? */
static bool record_is_valid(const struct cache_record *record, const struct cache_table *table, int64_t now)
{
	/* in this order nothing overflows, whatever the numbers are */
	return cache_record_is_whole(record, table) && record->learned > 0 &&
	       record->learned <= now + CACHE_CLOCK_SLACK && record->until > now &&
	       record->until <= record->learned + lifetime_max(record->key.kind) &&
	       cache_value_is_valid((enum cache_kind)record->key.kind, &record->value);
}

/* --- making and opening the file --- */

static int boot_id_read(char boot[CACHE_BOOT_ID_LEN])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return -errno;
	len = pread(fd, boot, CACHE_BOOT_ID_LEN, 0);
	RAWCALL(SYS_close, fd); /* in the shim close() is a hook, and it is a cancellation point */
	return len == CACHE_BOOT_ID_LEN ? 0 : -EIO;
}

static int header_make(struct cache_header *out)
{
	memset(out, 0, sizeof(*out));
	memcpy(out->magic, "libconvert cache", sizeof(out->magic));
	out->layout = LAYOUT;
	out->size = cache_file_size();
	return boot_id_read(out->boot);
}

/* Opens the file @name in @directory and checks its type, owner and mode. Returns a descriptor, or -errno. */
static int file_open(int directory, const char *name)
{
	int fd = openat(directory, name, OPEN_FLAGS), ret = 0;
	struct stat st;

	if (fd < 0) /* a symbolic link, a directory, a socket */
		return errno == ELOOP || errno == EISDIR || errno == ENXIO ? -EEXIST : -errno;
	if (fstat(fd, &st) < 0)
		ret = -errno;
	else if (!S_ISREG(st.st_mode))
		ret = -EEXIST;
	else if (st.st_uid != geteuid() || (st.st_mode & (S_IRWXG | S_IRWXO)))
		ret = -EPERM;
	if (ret == 0)
		return fd;
	RAWCALL(SYS_close, fd);
	return ret;
}

static bool file_is_usable(int fd, const struct cache_header *header)
{
	struct cache_header found;
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_size == (off_t)header->size &&
	       pread(fd, &found, sizeof(found), 0) == (ssize_t)sizeof(found) &&
	       memcmp(&found, header, sizeof(found)) == 0;
}

/* Writes an empty cache: a header and a hole. */
static int file_fill(int fd, const struct cache_header *header)
{
	ssize_t len;

	if (!file_limit_allows(header->size))
		return -EFBIG;
	if (fchmod(fd, S_IRUSR | S_IWUSR) < 0 || /* whatever the umask is */
	    ftruncate(fd, (off_t)header->size) < 0)
		return -errno;
	len = pwrite(fd, header, sizeof(*header), 0);
	if (len < 0)
		return -errno;
	return len == (ssize_t)sizeof(*header) ? 0 : -ENOSPC;
}

/*
 * Creates a file and gives it the name. Returns 0, or -errno: -EEXIST if there is one already (unless it may @replace it), or if its
 * temporary name was taken.
 */
static int file_make(int directory, const struct cache_header *header, bool replace)
{
	char name[sizeof(CACHE_FILE) + sizeof(".2147483647")];
	int fd, ret;

	snprintf(name, sizeof(name), CACHE_FILE ".%d", (int)RAWCALL(SYS_gettid));
	fd = openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    S_IRUSR | S_IWUSR);
	if (fd < 0) {
		ret = -errno;
		if (ret == -EEXIST) /* left by a process that was killed */
			unlinkat(directory, name, 0);
		return ret;
	}
	ret = file_fill(fd, header);
	RAWCALL(SYS_close, fd);
	if (ret == 0) {
		ret = replace ? renameat(directory, name, directory, CACHE_FILE) :
				linkat(directory, name, directory, CACHE_FILE, 0);
		ret = ret < 0 ? -errno : 0;
	}
	if (ret < 0 || !replace)
		unlinkat(directory, name, 0);
	return ret;
}

/* Returns a descriptor of a usable file, or -errno. */
static int file_get(int directory, const struct cache_header *header)
{
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		int fd = file_open(directory, CACHE_FILE), ret;

		if (fd < 0 && fd != -ENOENT)
			return fd;
		if (fd >= 0) {
			if (file_is_usable(fd, header))
				return fd;
			RAWCALL(SYS_close, fd);
		}
		ret = file_make(directory, header, fd >= 0);
		if (ret < 0 && ret != -EEXIST && ret != -ENOENT)
			return ret;
	}
	return -EAGAIN;
}

int cache_file_peek(const char *path, uid_t *owner)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), ret = fd < 0 ? -errno : 0;
	struct cache_header header;
	struct stat st;

	if (ret < 0)
		return ret;
	ret = header_make(&header);
	if (ret == 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !file_is_usable(fd, &header)))
		ret = -EINVAL;
	if (ret < 0) {
		RAWCALL(SYS_close, fd);
		return ret;
	}
	*owner = st.st_uid;
	return fd;
}

/* May this process change its user without an exec? Any capability counts, since some bring the others. */
static bool may_change_identity(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };
	uid_t real, effective, saved;

	return getresuid(&real, &effective, &saved) < 0 || real != effective || saved != effective ||
	       RAWCALL(SYS_capget, &header, data) < 0 || data[0].permitted || data[1].permitted;
}

static int file_map(struct cache *cache, int fd)
{
	void *file = mmap(NULL, cache_file_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (file == MAP_FAILED)
		return -errno;
	madvise(file, cache_file_size(), MADV_DONTDUMP); /* cookies are credentials: not into core dumps */
	cache->file = file;
	return 0;
}

/* Keeps a descriptor above the standard streams: in place of a closed one the file would get the program's output. */
static int file_keep(struct cache *cache, int fd)
{
	int kept = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	if (kept < 0)
		return -errno;
	cache->kept_fd = kept;
	return 0;
}

/* Notes the path by which each call opens the file. */
static int file_note(struct cache *cache, const char *path)
{
	if (strlen(path) + sizeof("/" CACHE_FILE) > sizeof(cache->path))
		return -ENAMETOOLONG;
	snprintf(cache->path, sizeof(cache->path), "%s/" CACHE_FILE, path);
	return 0;
}

int cache_file_open(struct cache *cache, int directory, const char *path)
{
	struct cache_header header;
	int fd, ret;

	if (getauxval(AT_SECURE))
		return -EPERM;
	ret = header_make(&header);
	if (ret < 0)
		return ret;
	fd = file_get(directory, &header);
	if (fd < 0)
		return fd;
	cache->user = geteuid();
	if (thread_process_is_ours)
		ret = file_keep(cache, fd);
	else
		ret = may_change_identity() ? file_note(cache, path) : file_map(cache, fd);
	RAWCALL(SYS_close, fd);
	return ret;
}

/* --- calls --- */

void cache_check_identity(const struct cache *cache)
{
	int saved_errno = errno;

	if (cache->file && geteuid() != cache->user)
		mmap(cache->file, cache_file_size(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
	errno = saved_errno;
}

bool cache_bucket_begin(struct cache_bucket *bucket, const struct cache *cache)
{
	int saved_errno = errno;

	bucket->cache = cache;
	bucket->fd = cache->kept_fd ? cache->kept_fd : -1;
	bucket->offset = 0;
	if (cache->kept_fd)
		return true;
	if (cache->file) {
		if (geteuid() == cache->user)
			return true;
		cache_check_identity(cache);
	}
	if (!*cache->path || geteuid() != cache->user)
		return false;
	quiet_all(&bucket->quiet); /* a handler that leaves by siglongjmp(3) would leave the descriptor */
	bucket->fd = file_open(AT_FDCWD, cache->path);
	errno = saved_errno;
	if (bucket->fd < 0)
		quiet_end(&bucket->quiet);
	return bucket->fd >= 0;
}

void cache_bucket_end(struct cache_bucket *bucket)
{
	int saved_errno = errno;

	if (bucket->fd < 0 || bucket->cache->kept_fd)
		return;
	RAWCALL(SYS_close, bucket->fd);
	errno = saved_errno;
	quiet_end(&bucket->quiet);
}

/* Copies from (@write: to) the file. */
static int copy(const struct cache_bucket *bucket, bool write, uint32_t offset, void *buf, size_t len)
{
	struct iovec local = { buf, len }, remote = { bucket->cache->file + offset, len };
	int saved_errno = errno, ret = 0;
	ssize_t done;

	if (write && bucket->fd >= 0 && !file_limit_allows(offset + len))
		return -EFBIG;
	if (bucket->fd >= 0)
		done = write ? pwrite(bucket->fd, buf, len, offset) : pread(bucket->fd, buf, len, offset);
	else /* the thread's id: that of the process is unknown here once its main thread has ended */
		done = (write ? process_vm_writev : process_vm_readv)((pid_t)RAWCALL(SYS_gettid), &local, 1, &remote, 1, 0);
	if (done < 0)
		ret = -errno;
	else if ((size_t)done != len)
		ret = -EFAULT;
	errno = saved_errno;
	return ret;
}

int cache_bucket_read(const struct cache_bucket *bucket, uint32_t offset, void *buf, size_t len)
{
	return copy(bucket, false, offset, buf, len);
}

int cache_bucket_write(const struct cache_bucket *bucket, uint32_t offset, const void *buf, size_t len)
{
	return copy(bucket, true, offset, (void *)(uintptr_t)buf, len);
}

/* Reads the bucket for @key into @bucket, unless it is there. Returns 0 or -errno. */
static int bucket_load(struct cache_bucket *bucket, const struct cache_key *key)
{
	const struct cache_table *table = cache_table_of((enum cache_kind)key->kind);
	uint32_t offset = cache_bucket_offset(key);
	int ret;

	if (bucket->offset == offset)
		return 0;
	bucket->offset = 0;
	bucket->table = table;
	ret = cache_bucket_read(bucket, offset, bucket->bytes, (size_t)table->ways * table->record_size);
	if (ret == 0)
		bucket->offset = offset;
	return ret;
}

static void record_at(const struct cache_bucket *bucket, uint32_t way, struct cache_record *out)
{
	size_t size = bucket->table->record_size;

	memcpy(out, bucket->bytes + way * size, size);
}

/* Writes @record, or zeros for NULL. */
static int record_write(const struct cache_bucket *bucket, uint32_t way, const struct cache_record *record)
{
	static const struct cache_record nothing;
	size_t size = bucket->table->record_size;

	return cache_bucket_write(bucket, bucket->offset + way * (uint32_t)size, record ? record : &nothing, size);
}

static bool has_key(const struct cache_bucket *bucket, uint32_t way, const struct cache_key *key)
{
	const uint8_t *record = bucket->bytes + way * bucket->table->record_size;

	return memcmp(record + offsetof(struct cache_record, key), key, sizeof(*key)) == 0;
}

/* The result of a search in the copy of a bucket. */
enum look { LOOK_NOTHING, LOOK_TORN, LOOK_FOUND };

static enum look look_for(const struct cache_bucket *bucket, const struct cache_key *key, int64_t now, struct cache_record *out)
{
	enum look look = LOOK_NOTHING;
	struct cache_record record;

	for (uint32_t way = 0; way < bucket->table->ways; way++) {
		if (!has_key(bucket, way, key))
			continue;
		record_at(bucket, way, &record);
		if (look != LOOK_FOUND && !cache_record_is_whole(&record, bucket->table))
			look = LOOK_TORN;
		if (!record_is_valid(&record, bucket->table, now) ||
		    (look == LOOK_FOUND && record.learned <= out->learned))
			continue;
		memcpy(out, &record, bucket->table->record_size);
		look = LOOK_FOUND;
	}
	return look;
}

/*
 * A record that isn't whole is usually being written, by a process that notes the same fact anew, so we read it again. If a writer was
 * killed in the middle, the record stays so until the next write.
 */
bool cache_bucket_find(struct cache_bucket *bucket, const struct cache_key *key, int64_t now, struct cache_record *out)
{
	enum look look = LOOK_TORN;

	for (int i = 0; i < READS_MAX && look == LOOK_TORN; i++) {
		if (i)
			bucket->offset = 0; /* the copy is out of date */
		if (bucket_load(bucket, key) < 0)
			return false;
		look = look_for(bucket, key, now, out);
	}
	return look == LOOK_FOUND;
}

/* Returns the place for a record whose key has none in the bucket: one that is free or has ended, else that of the oldest. */
static uint32_t victim(const struct cache_bucket *bucket, int64_t now)
{
	int64_t oldest = INT64_MAX;
	struct cache_record record;
	uint32_t found = 0;

	for (uint32_t way = 0; way < bucket->table->ways; way++) {
		record_at(bucket, way, &record);
		if (!record_is_valid(&record, bucket->table, now))
			return way;
		if (record.learned < oldest) {
			oldest = record.learned;
			found = way;
		}
	}
	return found;
}

int cache_bucket_put(struct cache_bucket *bucket, struct cache_record *record, int64_t now, int64_t until)
{
	const int64_t last = now + lifetime_max(record->key.kind);
	bool done = until <= now;
	int ret;

	record->learned = now;
	record->until = until < last ? until : last;
	cache_record_seal(record);
	ret = bucket_load(bucket, &record->key);
	for (uint32_t way = 0; ret == 0 && way < bucket->table->ways; way++) {
		if (!has_key(bucket, way, &record->key))
			continue;
		ret = record_write(bucket, way, done ? NULL : record); /* this erases a second record of the key */
		done = true;
	}
	if (ret == 0 && !done)
		ret = record_write(bucket, victim(bucket, now), record);
	bucket->offset = 0; /* the copy is out of date */
	return ret;
}
