/* SPDX-License-Identifier: BSD-3-Clause */
/* bad_calls_transfer.c - bad buffers: recv(), writev(), sendmsg() and their like */
#include "config.h"

#include "bad_calls.h"

#define VECTORS_MAX 1024 /* IOV_MAX */

static char bytes[16];

/* Makes an array of two buffers; the caller chooses the second one. */
static struct iovec *vector(void *at, size_t len)
{
	static struct iovec iov[2];

	iov[0] = (struct iovec){ bytes, 4 };
	iov[1] = (struct iovec){ at, len };
	return iov;
}

/* Makes an array of two buffers that ends where the memory ends, or behind it. */
static struct iovec *vector_at_edge(size_t room)
{
	struct iovec iov[2] = { { bytes, 4 }, { bytes, 4 } };

	return memcpy(edge(room), iov, room < sizeof(iov) ? room : sizeof(iov));
}

static struct iovec *many(void)
{
	static struct iovec iov[VECTORS_MAX + 1];

	for (size_t i = 0; i <= VECTORS_MAX; i++)
		iov[i] = (struct iovec){ bytes, 1 };
	return iov;
}

#define ROWS_VECTOR(call, ...)                                                                     \
	do {                                                                                       \
		ROWS(call(fd, (struct iovec *)(void *)bad.at, 1 __VA_ARGS__));                     \
		ROWS(call(fd, (struct iovec *)(void *)bad.at, 0 __VA_ARGS__));                     \
		ROWS(call(fd, (struct iovec *)(void *)bad.at, -1 __VA_ARGS__));                    \
		ROWS(call(fd, vector(bad.at, 4), 2 __VA_ARGS__));                                  \
		ROWS(call(fd, vector(bad.at, 0), 2 __VA_ARGS__));                                  \
		ROW(call(fd, vector(bytes, (size_t)-1), 2 __VA_ARGS__));                           \
		ROW(call(fd, vector(bytes, 0), 0 __VA_ARGS__));                                    \
		ROW(call(fd, vector(bytes, 0) + 1, 1 __VA_ARGS__));                                \
		ROW(call(fd, vector_at_edge(32), 2 __VA_ARGS__));                                  \
		ROW(call(fd, vector_at_edge(24), 2 __VA_ARGS__));                                  \
		ROW(call(fd, vector_at_edge(16), 2 __VA_ARGS__));                                  \
		ROW(call(fd, many(), VECTORS_MAX __VA_ARGS__));                                    \
		ROW(call(fd, many(), VECTORS_MAX + 1 __VA_ARGS__));                                \
		ROW(call(fd, many(), 1 << 30 __VA_ARGS__));                                        \
	} while (0)

/* Tells whether bytes were moved: a 64-bit kernel accepts a 32-bit program's count of all memory, and moves as many as it can. */
static ssize_t some(ssize_t bytes_moved)
{
	return bytes_moved > 0 ? 1 : bytes_moved;
}

static void rows_input(void)
{
	ROWS(read(fd, bad.at, 16));
	ROWS(read(fd, bad.at, 0));
	ROW(some(read(fd, bytes, (size_t)-1)));
	ROW(read(fd, edge(2), 100));
	ROWS(recv(fd, bad.at, 16, 0));
	ROWS(recv(fd, bad.at, 16, MSG_PEEK));
	ROWS(recv(fd, bad.at, 16, MSG_OOB));
	ROW(recv(fd, edge(2), 100, 0));
	ROWS(recvfrom(fd, bad.at, 16, 0, NULL, NULL));
	ROWS(recvfrom(fd, bytes, 16, 0, (void *)bad.at, len_of(16)));
	ROWS(recvfrom(fd, bytes, 16, 0, &server.sa, (void *)bad.at));
	ROWS(recvfrom(fd, bytes, 16, 0, NULL, (void *)bad.at));
	ROWS_LENGTH(recvfrom(fd, bytes, 16, 0, &server.sa, len_of(length)));
	ROWS_VECTOR(readv, );
#ifdef HAVE_PREADV2
	ROWS_VECTOR(preadv2, , -1, 0);
	ROW(preadv2(fd, vector(bytes, 4), 2, 0, 0));
#endif
}

/* These calls connect, or would; after a failure they begin another connection. */
static void rows_fastopen(void)
{
	ROWS(sendto(fd, bytes, 16, MSG_FASTOPEN, (void *)bad.at, server_len));
	ROWS(sendto(fd, bad.at, 16, MSG_FASTOPEN, &server.sa, server_len));
	ROWS_LENGTH(sendto(fd, bytes, 16, MSG_FASTOPEN, &server.sa, (socklen_t)length));
	ROW(sendto(fd, edge(2), 100, MSG_FASTOPEN, &server.sa, server_len));
}

static void rows_output(void)
{
	ROWS(write(fd, bad.at, 16));
	ROWS(write(fd, bad.at, 0));
	ROW(write(fd, edge(2), 100));
	ROW(some(write(fd, bytes, (size_t)-1)));
	ROWS(send(fd, bad.at, 16, 0));
	ROWS(send(fd, bad.at, 0, 0));
	ROW(send(fd, edge(2), 100, 0));
	ROWS(sendto(fd, bad.at, 16, 0, NULL, 0));
	ROWS(sendto(fd, bytes, 16, 0, (void *)bad.at, server_len));
	ROWS_LENGTH(sendto(fd, bytes, 16, 0, &server.sa, (socklen_t)length));
	ROWS_VECTOR(writev, );
#ifdef HAVE_PWRITEV2
	ROWS_VECTOR(pwritev2, , -1, 0);
	ROW(pwritev2(fd, vector(bytes, 4), 2, 0, 0));
#endif
}

static int zeros(void)
{
	return open("/dev/zero", O_RDONLY);
}

static int pipe_end(int end)
{
	int fds[2];

	return pipe2(fds, O_NONBLOCK) < 0 ? -1 : fds[end];
}

static void rows_copies(void)
{
	ROWS_UNREADABLE(sendfile(fd, zeros(), (void *)bad.at, 16));
	ROWS(sendfile(zeros(), fd, (void *)bad.at, 16));
	ROWS(splice(fd, (void *)bad.at, pipe_end(1), NULL, 16, 0));
	ROWS_UNREADABLE(splice(pipe_end(0), (void *)bad.at, fd, NULL, 16, 0));
	ROWS_UNREADABLE(splice(pipe_end(0), NULL, fd, (void *)bad.at, 16, 0));
	ROW(splice(fd, NULL, pipe_end(1), NULL, 0, 0));
}

void rows_transfer(void)
{
	rows_input();
	rows_output();
	if (!scene_is("over"))
		rows_fastopen();
	rows_copies();
}

static struct msghdr header;

/* Makes a message header, of which the caller chooses one part. */
static struct msghdr *of_parts(struct iovec *iov, size_t count)
{
	header = (struct msghdr){ .msg_iov = iov, .msg_iovlen = count };
	return &header;
}

static struct msghdr *of_name(void *at, socklen_t len)
{
	of_parts(vector(bytes, 4), 2);
	header.msg_name = at;
	header.msg_namelen = len;
	return &header;
}

static struct msghdr *of_control(void *at, size_t len)
{
	of_parts(vector(bytes, 4), 2);
	header.msg_control = at;
	header.msg_controllen = len;
	return &header;
}

/* Puts the message header at the end of memory, or cuts its end off. */
static struct msghdr *header_at_edge(size_t room)
{
	return edge_copy(of_parts(vector(bytes, 4), 2), room);
}

/*
 * In programs with times of 64 bits on 32-bit machines glibc's recvmsg() and recvmmsg() read the headers themselves, and die if they can't.
 * musl's recvmmsg() and sendmmsg() always do so. So these calls can't be compared with those under the shim.
 */
static bool library_reads(const char *call)
{
#ifdef __GLIBC__
	return sizeof(long) < sizeof(int64_t) && sizeof(time_t) == sizeof(int64_t) && strncmp(call, "recv", strlen("recv")) == 0;
#else
	return strstr(call, "mmsg") != NULL;
#endif
}

#define ROWS_MESSAGE(call, flags)                                                                  \
	do {                                                                                       \
		if (!library_reads(#call))                                                         \
			ROWS_UNREADABLE(call(fd, (struct msghdr *)(void *)bad.at, flags));         \
		ROWS(call(fd, of_parts((struct iovec *)(void *)bad.at, 1), flags));                \
		ROWS(call(fd, of_parts((struct iovec *)(void *)bad.at, 0), flags));                \
		ROWS(call(fd, of_parts((struct iovec *)(void *)bad.at, (size_t)-1), flags));       \
		ROWS(call(fd, of_parts(vector(bad.at, 4), 2), flags));                             \
		ROWS(call(fd, of_name(bad.at, server_len), flags));                                \
		ROWS(call(fd, of_name(bad.at, (socklen_t)-1), flags));                             \
		ROWS_LENGTH(call(fd, of_name(&server, (socklen_t)length), flags));                 \
		ROWS_UNREADABLE(call(fd, of_control(bad.at, 16), flags));                          \
		ROWS_UNREADABLE(call(fd, of_control(bad.at, 64), flags));                          \
		ROWS(call(fd, of_control(bad.at, (size_t)-1), flags));                             \
		ROW(call(fd, of_parts(many(), VECTORS_MAX), flags));                               \
		ROW(call(fd, of_parts(many(), VECTORS_MAX + 1), flags));                           \
		ROW(call(fd, of_parts(vector_at_edge(24), 2), flags));                             \
		ROW(call(fd, header_at_edge(sizeof(header)), flags));                              \
		ROW(call(fd, header_at_edge(sizeof(header) - 1), flags));                          \
		if (!library_reads(#call))                                                         \
			ROW(call(fd, header_at_edge(sizeof(header) / 2), flags));                  \
	} while (0)

static struct mmsghdr *two(struct msghdr *second)
{
	static struct mmsghdr headers[2];

	headers[1].msg_hdr = *second;
	headers[0].msg_hdr = *of_parts(many(), 2);
	return headers;
}

/* A header in full, and @room bytes of the next one. */
static struct mmsghdr *two_at_edge(size_t room)
{
	return edge_copy(two(of_parts(many(), 1)), sizeof(struct mmsghdr) + room);
}

/* Memory that can be read, but not written. */
static struct mmsghdr *unwritable(void)
{
	struct mmsghdr *headers = edge_copy(two(of_parts(many(), 1)), 2 * sizeof(*headers));
	char *at = (char *)((uintptr_t)headers & ~(uintptr_t)4095);

	return mprotect(at, 4096, PROT_READ) < 0 ? NULL : headers;
}

static void rows_several(void)
{
	if (library_reads("sendmmsg"))
		return;
	ROWS(sendmmsg(fd, (struct mmsghdr *)(void *)bad.at, 1, 0));
	ROWS(sendmmsg(fd, (struct mmsghdr *)(void *)bad.at, 0, 0));
	if (!scene_is("over"))
		ROWS(sendmmsg(fd, (struct mmsghdr *)(void *)bad.at, (unsigned int)-1, MSG_FASTOPEN));
	ROWS_UNREADABLE(sendmmsg(fd, two(of_control(bad.at, 64)), 2, 0));
	ROWS(sendmmsg(fd, two(of_parts((struct iovec *)(void *)bad.at, 1)), 2, 0));
	ROW(sendmmsg(fd, two_at_edge(0), 2, 0));
	ROW(sendmmsg(fd, two_at_edge(8), 2, 0));
	ROW(sendmmsg(fd, two_at_edge(0), (unsigned int)-1, 0));
	ROW(sendmmsg(fd, unwritable(), 2, 0));
	if (!library_reads("recvmmsg"))
		ROWS_UNREADABLE(recvmmsg(fd, (struct mmsghdr *)(void *)bad.at, 1, 0, NULL));
	ROWS(recvmmsg(fd, (struct mmsghdr *)(void *)bad.at, 0, 0, NULL));
	ROWS(recvmmsg(fd, two(of_control(bad.at, 64)), 2, 0, NULL));
	if (sizeof(time_t) == sizeof(int64_t)) /* the C library itself writes shorter times, and may die of it */
		ROWS(recvmmsg(fd, two(of_parts(many(), 1)), 2, 0, (void *)bad.at));
	if (!library_reads("recvmmsg"))
		ROW(recvmmsg(fd, two_at_edge(8), 2, 0, NULL));
	ROW(recvmmsg(fd, unwritable(), 2, 0, NULL));
}

/* A Unix socket for sending a message. */
static int post(void)
{
	int fds[2];

	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) < 0 ? -1 : fds[0];
}

/* SCM_RIGHTS with a socket: its cmsg_len is @claimed, its memory has @room bytes, and msg_controllen is @told. */
static struct msghdr *rights(size_t claimed, size_t room, size_t told)
{
	const int fds[2] = { socket(AF_INET, SOCK_STREAM, 0), -1 };
	union {
		struct cmsghdr header;
		char bytes[24];
	} control = { .header = { .cmsg_len = claimed, .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };

	memcpy(control.bytes + sizeof(control.header), fds, sizeof(fds));
	return of_control(edge_copy(&control, room), told);
}

static void rows_rights(void)
{
	ROW(sendmsg(post(), rights(20, 24, 24), 0));
	ROW(sendmsg(post(), rights(20, 20, 20), 0));
	ROW(sendmsg(post(), rights(20, 20, 24), 0));
	ROW(sendmsg(post(), rights(24, 24, 24), 0));
	ROW(sendmsg(post(), rights(0, 24, 24), 0));
	ROW(sendmsg(post(), rights(15, 24, 24), 0));
	ROW(sendmsg(post(), rights(17, 24, 24), 0));
	ROW(sendmsg(post(), rights((size_t)-1, 24, 24), 0));
	ROW(sendmsg(post(), rights(20, 24, 8), 0));
	ROW(sendmsg(post(), rights(20, 24, 100), 0));
	ROW(sendmsg(post(), rights(20, 24, (size_t)-1), 0));
	ROW(sendmmsg(post(), two(rights(20, 20, 24)), 2, 0));
	ROW(sendmmsg(post(), two(rights(0, 24, 24)), 2, 0));
}

void rows_messages(void)
{
	ROWS_MESSAGE(sendmsg, 0);
	if (!scene_is("over"))
		ROWS_MESSAGE(sendmsg, MSG_FASTOPEN);
	ROWS_MESSAGE(recvmsg, 0);
	rows_several();
	rows_rights();
}
