/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_private.h - what the files of the fake kernel share */
#ifndef TESTS_UNIT_FAKE_PRIVATE_H
#define TESTS_UNIT_FAKE_PRIVATE_H

#include "fake_kernel.h"

#include <signal.h>
#include <sys/socket.h>

#define FAKE_FILES 48
#define FAKE_BYTES 16384 /* of a stream, in each direction */
#define FAKE_OPTIONS 32
#define FAKE_REGISTRATIONS 16
#define FAKE_NEVER INT64_MAX

enum fake_state { FAKE_CLOSED, FAKE_SYN_SENT, FAKE_ESTABLISHED };

struct fake_option {
	int level, name, value;
};

struct fake_socket {
	int domain, type, protocol;
	uint64_t cookie;
	enum fake_state state;
	unsigned int connection; /* its number: events for an earlier one are dropped */
	bool deferred;    /* TCP_FASTOPEN_CONNECT: connect() has returned 0, and the SYN waits for data */
	bool was_open;    /* it had a connection, which is over: recv(2) returns 0 */
	bool aborted;     /* an attempt failed: the next connect(2) fails once */
	bool fin;         /* the peer's */
	bool shut_in, shut_out;
	int error;        /* sk_err: reported once */
	int queued;       /* ICMP messages in the error queue, which TCP keeps even without IP_RECVERR */
	union sockaddr_ip local, peer;
	bool bound;
	int host;         /* index of the peer; -1: nobody has this address */
	unsigned int answer; /* which connection of that host's this is */
	bool answered;    /* its answer is on its way */
	size_t said;      /* bytes of that answer */
	uint8_t in[FAKE_BYTES], out[FAKE_BYTES];
	size_t in_len, in_total, out_len;
	size_t syn_len;   /* bytes of out that went with the SYN */
	bool syn_taken, timestamps, fallen_back;
	unsigned int segments;
	int64_t heard;    /* ns, when the peer was last heard */
	struct fake_option options[FAKE_OPTIONS];
};

struct fake_registration {
	int fd;
	struct fake_file *file; /* NULL: unused */
	uint32_t events;
	uint64_t data;
	bool armed; /* edge-triggered: something has happened since the last event */
};

struct fake_file {
	unsigned int refs; /* descriptors; 0: unused */
	bool is_epoll;
	bool is_timer;
	int64_t expires;   /* of a timer, in ns; 0: never */
	int flags;         /* of F_GETFL */
	struct fake_socket socket;
	struct fake_registration registrations[FAKE_REGISTRATIONS];
};

/* fake_kernel.c */

/* A call begins. Returns true, with errno set, if it is to fail. */
bool fake_enter(enum fake_call call);
bool fake_is_fd(int fd);
struct fake_file *fake_file_of(int fd); /* NULL, with errno EBADF */
struct fake_file *fake_socket_file(int fd); /* the same, and ENOTSOCK */
int fake_file_make(int fd_flags, struct fake_file **made);
bool fake_close(int fd);
int64_t fake_now(void);
void fake_at(int64_t ns, void (*what)(struct fake_socket *socket), struct fake_socket *socket);

/* Waits until @ready(arg), or for @ns (FAKE_NEVER: without limit). Returns whether it is ready. */
bool fake_wait(bool (*ready)(void *arg), void *arg, int64_t ns, bool may_wait);

/* fake_socket.c */
void fake_socket_reset(struct fake_socket *socket);
short fake_socket_poll(const struct fake_socket *socket);
void fake_established(struct fake_socket *socket);
void fake_refused(struct fake_socket *socket, int error);
struct fake_option *fake_option_of(struct fake_socket *socket, int level, int name);

/* fake_network.c */
int fake_host_find(const union sockaddr_ip *address);

/* Returns 0 or the errno of a connect(2) that looks for a route to the peer of @socket before it defers the SYN. */
int fake_network_route(const struct fake_socket *socket);

/* A SYN leaves @socket, whose peer is set. Returns 0 or the errno of a connect(2) that fails at once. */
int fake_network_syn(struct fake_socket *socket);

/* Call it when bytes have left @socket, or its handshake is over: the host may answer. */
void fake_network_sent(struct fake_socket *socket);
bool fake_network_is_alive(const struct fake_socket *socket);

/* fake_epoll.c */
void fake_epoll_wake(const struct fake_socket *socket);
void fake_epoll_forget(const struct fake_file *file);
int fake_poll_now(struct pollfd *fds, unsigned long count);

/* fake_threads.c */
void fake_turn(void);          /* another thread may go on here */
bool fake_turn_waiting(void);  /* this thread waits; false: so do all others */
bool fake_signals_are_blocked(void);

/* fake_options.c */
int fake_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int fake_setsockopt(int fd, int level, int name, const void *value, socklen_t len);

/* The functions of the table. */
#define FAKE_TABLE_SOCKET                                                                          \
	.socket = fake_socket_call, .connect = fake_connect, .bind = fake_bind, .listen = fake_listen, \
	.getpeername = fake_getpeername, .getsockname = fake_getsockname, .shutdown = fake_shutdown, \
	.read = fake_read, .recv = fake_recv, .write = fake_write, .send = fake_send, .sendto = fake_sendto, .sendmsg = fake_sendmsg, \
	.ioctl = fake_ioctl
int fake_socket_call(int domain, int type, int protocol);
int fake_connect(int fd, const struct sockaddr *addr, socklen_t len);
int fake_bind(int fd, const struct sockaddr *addr, socklen_t len);
int fake_listen(int fd, int backlog);
int fake_getpeername(int fd, struct sockaddr *addr, socklen_t *len);
int fake_getsockname(int fd, struct sockaddr *addr, socklen_t *len);
int fake_shutdown(int fd, int how);
ssize_t fake_read(int fd, void *buf, size_t count);
ssize_t fake_recv(int fd, void *buf, size_t len, int flags);
ssize_t fake_write(int fd, const void *buf, size_t count);
ssize_t fake_send(int fd, const void *buf, size_t len, int flags);
ssize_t fake_sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *addr, socklen_t addrlen);
ssize_t fake_sendmsg(int fd, const struct msghdr *msg, int flags);
int fake_ioctl(int fd, unsigned long request, ...);

#define FAKE_TABLE_EPOLL                                                                           \
	.poll = fake_poll, .ppoll = fake_ppoll, .epoll_ctl = fake_epoll_ctl, .epoll_wait = fake_epoll_wait, \
	.epoll_pwait = fake_epoll_pwait
int fake_poll(struct pollfd *fds, unsigned long count, int timeout_ms);
int fake_ppoll(struct pollfd *fds, unsigned long count, const struct timespec *timeout, const sigset_t *mask);
int fake_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int fake_epoll_wait(int epfd, struct epoll_event *events, int max, int timeout_ms);
int fake_epoll_pwait(int epfd, struct epoll_event *events, int max, int timeout_ms, const sigset_t *mask);

#endif
