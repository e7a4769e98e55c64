/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shim_world.h - one run of the shim on the fake kernel: a process, an application in it, and checks afterwards
 *
 * The application is the test's own code: it calls hook_socket(), hook_connect() and so on, as if these were the C library's.
 */
#ifndef TESTS_UNIT_SHIM_WORLD_H
#define TESTS_UNIT_SHIM_WORLD_H

#include "fake_kernel.h"

#include "client/settings.h"
#include "shim/socket/conn.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#define CONVERTER "192.0.2.1:1234"
#define OTHER_CONVERTER "192.0.2.2:1234"
#define SERVER "203.0.113.5:80"
#define OTHER_SERVER "203.0.113.6:80"

/* The hooks. */
int hook_socket(int domain, int type, int protocol);
int hook_connect(int fd, const struct sockaddr *addr, socklen_t len);
int hook_getpeername(int fd, struct sockaddr *addr, socklen_t *len);
int hook_getsockname(int fd, struct sockaddr *addr, socklen_t *len);
int hook_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int hook_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
int hook_shutdown(int fd, int how);
int hook_close(int fd);
int hook_dup(int fd);
int hook_dup2(int fd, int to);
int hook_dup3(int fd, int to, int flags);
int hook_ioctl(int fd, unsigned long request, ...);
int hook_poll(struct pollfd *fds, unsigned long count, int timeout_ms);
int hook_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int hook_epoll_wait(int epfd, struct epoll_event *events, int max, int timeout_ms);
ssize_t hook_recv(int fd, void *buf, size_t len, int flags);
ssize_t hook_send(int fd, const void *buf, size_t len, int flags);
ssize_t hook_sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *addr, socklen_t addrlen);

/* --- converters' messages --- */

struct world_message {
	uint8_t bytes[1024];
	size_t len;
};

/* The server was reached. */
extern struct world_message world_ok;

/* The same, with an answer to Info: SYNs are withheld for a second, Multipath TCP is supported. */
extern struct world_message world_ok_withholds;

/* The same, and silent requests are taken. */
extern struct world_message world_ok_silent;

/* Returns a response with an Error TLV: code 3 has a cookie, code 33 names Multipath TCP as the unsupported option. */
struct world_message world_error(unsigned int code, uint8_t value);

/* Returns @message as a host's answer, @after_ms after the request. */
struct fake_answer world_answer(const struct world_message *message, int after_ms);

/* --- a run --- */

/* The shim's environment. The child calls world_begin() with it before anything else; NULL: none is set. */
struct world_options {
	const char *converters; /* NULL: CONVERTER */
	const char *fallback, *early_data, *bypass_mptcp, *withholding;
};
void world_begin(const struct world_options *options);

/*
 * world_run() - call @body in a process of its own, for which it adds the hosts CONVERTER, SERVER … itself
 * A failure ends that process with a message. Returns whether there was none.
 */
bool world_run(void (*body)(void *arg), void *arg, const char *name);

/* Ends the run with a message unless the condition holds. */
#define world_expect(condition, ...)                                                               \
	do {                                                                                       \
		if (!(condition))                                                                  \
			world_failed(__FILE__, __LINE__, #condition, __VA_ARGS__);                 \
	} while (0)
__attribute__((noreturn, format(printf, 4, 5))) void world_failed(const char *file, int line, const char *condition,
								 const char *format, ...);

/* Returns memory, all zero, that the processes of runs share with the one that starts them. */
void *world_shared_memory(size_t bytes);

/* --- what the application does --- */

union sockaddr_ip world_address(const char *text);
int world_socket(bool blocking);

/* connect(2) to @server: 0 or a positive errno. */
int world_connect(int fd, const char *server);

/* Waits until @fd is writable, for @ms at most. Returns the revents. */
short world_wait(int fd, int ms);

/* Returns SO_ERROR, or the errno of getsockopt(). */
int world_error_of(int fd);

/* Returns the peer that the application sees: "203.0.113.5:80", or the errno's text. */
const char *world_peer(int fd, char text[static SOCKADDR_STRLEN]);

/* --- states --- */

/* The states that the application can tell apart, each of one or more phases; WORLD_NONE if @fd has no conn. */
enum world_state {
	WORLD_FREE,
	WORLD_IDLE,
	WORLD_STARTING,
	WORLD_DIRECT,
	WORLD_DEFERRED,
	WORLD_PENDING,
	WORLD_CONFIRMED,
	WORLD_DONE,
	WORLD_FAILED,
	WORLD_NONE,
};
enum world_state world_state(int fd);
const char *world_state_name(enum world_state state);

/* The phase; CONN_PHASE_COUNT if @fd has no conn. */
enum conn_phase world_phase(int fd);

/* How often has a conn gone from one phase to the other, in all runs of this program? */
unsigned int world_transitions(enum conn_phase from, enum conn_phase to);

/* --- invariants --- */

/* Requires that nothing is left when all descriptors are closed: no descriptor, no counted conn, no claim. */
void world_is_empty(void);

/* Requires that the options of @fd, and its registration in @epfd (-1: none) for @events, are the application's. */
void world_is_restored(int fd, int epfd, uint32_t events);

#endif
