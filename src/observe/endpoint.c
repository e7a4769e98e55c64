/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * endpoint.c - answers HTTP requests about a daemon, without delaying the daemon
 *
 * The problem: HTTP clients that are slow, many or hostile must neither stop the main thread nor keep the operator's
 * own requests from being answered.
 *
 * libmicrohttpd speaks HTTP. It limits each resource that a client could use up. It runs in our event loop, by an
 * epoll descriptor that is readable when the library has work. Its time-out begins again with each byte, so a client
 * could hold one of the few connections for ever. So we give each connection one deadline (DEADLINE_SECONDS) and one
 * request. Answers are made at once from counters that are read without locks, and are complete in memory before the
 * first byte is sent: a slow reader costs that memory until its deadline.
 *
 * We accept clients ourselves, since the library would let further ones wait while all CONNECTIONS_MAX are taken;
 * here the oldest connection gives way to a new one. A client that sends its request at once is answered in the round
 * of the loop that accepts it, however many slow ones there are; those only get less time. Without a free descriptor
 * we accept no client for PAUSE_MS. endpoint_destroy() ends all connections.
 */
#include "config.h"

#include "observe/monitor.h"

#include "common/problems.h"
#include "common/clock.h"
#include "daemon/warden_message.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static void tell_problem(struct problems *problems, const struct metrics_address *where,
			 const char *text)
{
	static const struct place place = { .name = "metrics" };
	char name[METRICS_ADDRESS_STRLEN];

	problems_add(problems, &place, "%s: %s", metrics_address_format(where, name), text);
}

#ifdef HAVE_LIBMICROHTTPD

#include <event2/event.h>
#include <microhttpd.h>
#include <utlist.h>

/* The most connections at the same time. With the library's own descriptors they make ENDPOINT_FILES_MAX. */
#define CONNECTIONS_MAX 16
#define BACKLOG 1024

/* After we had no descriptor for a client, we accept none for this long, in milliseconds. */
#define PAUSE_MS 100

/* The most clients that we accept in one round of the loop, so that signals get their turn. */
#define ACCEPTS_PER_ROUND 64

/* Seconds from accept to the last byte of the answer. */
#define DEADLINE_SECONDS 5

/* The memory of a connection in bytes, for the headers of its request and answer. */
#define CONNECTION_MEMORY 8192

struct connection {
	struct connection *prev, *next;
	int fd;
	uint64_t deadline_ms;
};

struct endpoint {
	struct metrics_address where;
	const struct monitor *monitor; /* answers */
	int fd; /* the listening socket */
	struct event *arrival;
	struct MHD_Daemon *daemon;
	struct event *ready; /* watches the daemon's epoll descriptor */
	struct event *timer;
	struct connection *connections; /* the newest first */
	unsigned count;
	bool paused; /* we had no descriptor: no client is accepted until the timer fires, or the library reports one */
};

/* The library calls this when a connection starts and when it has ended. */
static void on_connection(void *arg, struct MHD_Connection *connection, void **context,
			  enum MHD_ConnectionNotificationCode code)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct endpoint *endpoint = arg;
	struct connection *c = *context;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		c = info ? calloc(1, sizeof(*c)) : NULL;
		if (!c)
			return;
		c->fd = info->connect_fd;
		c->deadline_ms = clock_now_ms() + DEADLINE_SECONDS * 1000;
		DL_PREPEND(endpoint->connections, c);
		endpoint->count++;
		*context = c;
	} else if (c) {
		endpoint->count--;
		DL_DELETE(endpoint->connections, c);
		free(c);
		*context = NULL;
	}
}

static enum MHD_Result send_answer(struct MHD_Connection *connection,
				   const struct endpoint_answer *answer)
{
	static const char *const headers[][2] = {
		{ MHD_HTTP_HEADER_CONNECTION, "close" },
		{ MHD_HTTP_HEADER_CACHE_CONTROL, "no-store" },
		{ "X-Content-Type-Options", "nosniff" },
		{ "Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
		  "frame-ancestors 'none'" },
	};
	struct MHD_Response *response = MHD_create_response_from_buffer(answer->len, answer->body,
									MHD_RESPMEM_MUST_FREE);
	enum MHD_Result result;

	if (!response) {
		free(answer->body);
		return MHD_NO;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->type);
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		MHD_add_response_header(response, headers[i][0], headers[i][1]);
	result = MHD_queue_response(connection, answer->status, response);
	MHD_destroy_response(response);
	return result;
}

static void make_refusal(struct endpoint_answer *answer, unsigned status, const char *text)
{
	answer->status = status;
	answer->type = "text/plain; charset=utf-8";
	answer->body = strdup(text);
	answer->len = answer->body ? strlen(text) : 0;
}

/* The library calls this when the header is complete, for each part of a body, which is ignored, and at the request's end. */
static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *data_size, void **context)
{
	static char seen;
	struct endpoint *endpoint = arg;
	struct endpoint_answer answer = { .status = MHD_HTTP_OK };

	(void)version;
	(void)data;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
		make_refusal(&answer, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
		return send_answer(connection, &answer);
	}
	if (!*context || *data_size) {
		*context = &seen;
		*data_size = 0;
		return MHD_YES;
	}
	if (!monitor_answer(endpoint->monitor, url, &answer))
		make_refusal(&answer, MHD_HTTP_NOT_FOUND,
			     "there are /, /status, /status.json, /metrics and /healthz\n");
	return send_answer(connection, &answer);
}

/* Runs the library, ends connections after their deadline, and sets the timer for the next run. */
static void run(struct endpoint *endpoint)
{
	uint64_t now = clock_now_ms(), wait = 1000;
	MHD_UNSIGNED_LONG_LONG asked;
	struct timeval timeout;

	for (struct connection *c = endpoint->connections; c; c = c->next)
		if (now >= c->deadline_ms)
			shutdown(c->fd, SHUT_RDWR);
	MHD_run(endpoint->daemon);
	if (!endpoint->connections && !endpoint->paused) {
		event_del(endpoint->timer);
		return;
	}
	if (endpoint->paused)
		wait = PAUSE_MS;
	if (MHD_get_timeout(endpoint->daemon, &asked) == MHD_YES && asked < wait)
		wait = asked;
	timeout.tv_sec = (time_t)(wait / 1000);
	timeout.tv_usec = (suseconds_t)(wait % 1000 * 1000);
	event_add(endpoint->timer, &timeout);
}

/* Ends the oldest connection, as at its deadline. */
static void end_oldest(struct endpoint *endpoint)
{
	/* In a list of utlist.h, the head's prev is the last element. */
	if (endpoint->connections)
		shutdown(endpoint->connections->prev->fd, SHUT_RDWR);
	MHD_run(endpoint->daemon);
}

/* Accepts the next client. Returns false if there is none, or no descriptor for it. */
static bool accept_one(struct endpoint *endpoint)
{
	struct sockaddr_storage address;
	socklen_t len = sizeof(address);
	int fd = accept4(endpoint->fd, (struct sockaddr *)&address, &len,
			 SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0) {
		endpoint->paused = errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
				   errno == ENOMEM;
		/* The listening socket stays readable, so that the loop would spin. */
		if (endpoint->paused)
			event_del(endpoint->arrival);
		return false;
	}
	/* Two rounds: the library may need a second run before it counts a connection that was shut down as ended. */
	for (int i = 0; i < 2 && endpoint->count >= CONNECTIONS_MAX; i++)
		end_oldest(endpoint);
	/* If the library refuses the connection, it closes the socket. */
	MHD_add_connection(endpoint->daemon, fd, (const struct sockaddr *)&address, len);
	return true;
}

static void on_arrival(evutil_socket_t fd, short what, void *arg)
{
	struct endpoint *endpoint = arg;

	(void)fd;
	(void)what;
	for (int i = 0; i < ACCEPTS_PER_ROUND && accept_one(endpoint); i++)
		;
	run(endpoint);
}

static void on_event(evutil_socket_t fd, short what, void *arg)
{
	struct endpoint *endpoint = arg;

	(void)fd;
	(void)what;
	if (endpoint->paused && event_add(endpoint->arrival, NULL) == 0)
		endpoint->paused = false;
	run(endpoint);
}

/* Removes the path of a socket at which nobody listens any more, as bind() would fail there. Keeps one that answers. */
static void remove_stale(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return;
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 &&
	    errno == ECONNREFUSED)
		unlink(address->sun_path);
	close(fd);
}

static int bind_unix(int fd, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	strcpy(address.sun_path, path);
	remove_stale(&address);
	return bind(fd, (const struct sockaddr *)&address, sizeof(address));
}

static int bind_ip(int fd, const union sockaddr_ip *address)
{
	static const int on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	errno = -rights_bind(fd, address);
	return errno ? -1 : 0;
}

/* Returns a listening socket or -errno. */
static int open_socket(const struct metrics_address *where)
{
	int family = where->path[0] ? AF_UNIX : where->address.sa.sa_family, error;
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if ((where->path[0] ? bind_unix(fd, where->path) : bind_ip(fd, &where->address)) == 0 &&
	    listen(fd, BACKLOG) == 0)
		return fd;
	error = errno;
	close(fd);
	return -error;
}

static bool add_events(struct endpoint *endpoint, struct event_base *base, int epoll_fd)
{
	endpoint->arrival =
		event_new(base, endpoint->fd, EV_READ | EV_PERSIST, on_arrival, endpoint);
	endpoint->ready = event_new(base, epoll_fd, EV_READ | EV_PERSIST, on_event, endpoint);
	endpoint->timer = event_new(base, -1, 0, on_event, endpoint);
	return endpoint->arrival && endpoint->ready && endpoint->timer &&
	       event_add(endpoint->ready, NULL) == 0 && event_add(endpoint->arrival, NULL) == 0;
}

static bool start_daemon(struct endpoint *endpoint, struct event_base *base)
{
	const union MHD_DaemonInfo *info = NULL;

	endpoint->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, on_request, endpoint,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)DEADLINE_SECONDS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, endpoint, MHD_OPTION_END);
	if (endpoint->daemon)
		info = MHD_get_daemon_info(endpoint->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	return info && add_events(endpoint, base, info->epoll_fd);
}

/* Returns why we can't listen at the address, with a remedy if there is one. @error: an errno */
static const char *explain(const struct metrics_address *where, int error)
{
	if (error == ENOENT)
		return "there is no such directory; make it, or leave this out";
	if (error == EACCES && where->path[0])
		return "Permission denied: this process's user can't make files in that directory; chown it to that user";
	return strerror(error);
}

struct endpoint *endpoint_create(struct event_base *base, const struct metrics_address *where,
				 const struct monitor *monitor, struct problems *problems)
{
	struct endpoint *endpoint = calloc(1, sizeof(*endpoint));
	int fd = open_socket(where);

	if (endpoint)
		endpoint->fd = fd;
	else if (fd >= 0)
		close(fd);
	if (endpoint && fd >= 0) {
		endpoint->where = *where;
		endpoint->monitor = monitor;
		if (start_daemon(endpoint, base))
			return endpoint;
	}
	tell_problem(problems, where, explain(where, fd < 0 ? -fd : ENOMEM));
	endpoint_destroy(endpoint);
	return NULL;
}

void endpoint_destroy(struct endpoint *endpoint)
{
	if (!endpoint)
		return;
	if (endpoint->arrival)
		event_free(endpoint->arrival);
	if (endpoint->ready)
		event_free(endpoint->ready);
	if (endpoint->timer)
		event_free(endpoint->timer);
	if (endpoint->daemon)
		MHD_stop_daemon(endpoint->daemon);
	if (endpoint->fd >= 0) {
		close(endpoint->fd);
		if (endpoint->where.path[0])
			unlink(endpoint->where.path);
	}
	free(endpoint);
}

const struct metrics_address *endpoint_address(const struct endpoint *endpoint)
{
	return &endpoint->where;
}

#else

struct endpoint *endpoint_create(struct event_base *base, const struct metrics_address *where,
				 const struct monitor *monitor, struct problems *problems)
{
	(void)base;
	(void)monitor;
	tell_problem(problems, where,
		     "this program was built without libmicrohttpd; build it with, or leave --metrics out");
	return NULL;
}

void endpoint_destroy(struct endpoint *endpoint)
{
	(void)endpoint;
}

const struct metrics_address *endpoint_address(const struct endpoint *endpoint)
{
	(void)endpoint;
	return NULL;
}

#endif

/*
 * "convertd status": asks the running daemon for its status and prints it
 *
 * It sends one request of HTTP/1.0, whose answer ends with the connection, so that we have to understand only the
 * status line and the empty line. The process at that address may not be a daemon of ours, so the answer is read up to a
 * limit, and printed without control characters.
 */

#define ANSWER_MAX (256 * 1024)
#define TIMEOUT_SECONDS 10

/* Returns a connected socket or -errno. */
static int open_connection(const struct metrics_address *where)
{
	static const struct timeval timeout = { .tv_sec = TIMEOUT_SECONDS };
	struct sockaddr_un path = { .sun_family = AF_UNIX };
	const struct sockaddr *address = (const struct sockaddr *)&path;
	socklen_t len = sizeof(path);
	int fd, error;

	if (where->path[0]) {
		strcpy(path.sun_path, where->path);
	} else {
		address = &where->address.sa;
		len = sockaddr_ip_len(&where->address);
	}
	fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	if (connect(fd, address, len) == 0)
		return fd;
	/* connect() fails with EINPROGRESS when the time-out of SO_SNDTIMEO has passed (socket(7)). */
	error = errno == EINPROGRESS ? ETIMEDOUT : errno;
	close(fd);
	return -error;
}

/* Sends the request and reads the answer to its end. Returns the number of its bytes, or -errno. */
static ssize_t exchange(int fd, char answer[static ANSWER_MAX + 1])
{
	static const char request[] = "GET /status HTTP/1.0\r\nHost: localhost\r\n\r\n";
	size_t len = 0;
	ssize_t n;

	if (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) < 0)
		return -errno;
	while (len < ANSWER_MAX && (n = recv(fd, answer + len, ANSWER_MAX - len, 0)) != 0) {
		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		len += (size_t)n;
	}
	answer[len] = '\0';
	return (ssize_t)len;
}

/* Returns the body of an answer with status 200, or NULL. */
static const char *find_body(const char *answer)
{
	const char *body = strstr(answer, "\r\n\r\n");

	if (strncmp(answer, "HTTP/1.", 7) != 0 || strncmp(answer + 8, " 200 ", 5) != 0 || !body)
		return NULL;
	return body + 4;
}

/* Prints the text of another process: its control characters mustn't reach the terminal. */
static void print_body(const char *body)
{
	for (; *body; body++)
		putchar((*body >= ' ' && *body < 127) || *body == '\n' ? *body : '?');
}

/* Reports that the program can't be asked, with the likely remedy. */
static void tell_failure(const char *program, const char *name, int error)
{
	fprintf(stderr, "%s: status: %s: %s; ", program, name, strerror(error));
	if (error == EACCES || error == EPERM)
		fprintf(stderr, "ask as root, or as the user of %s\n", program);
	else if (error == ETIMEDOUT || error == EAGAIN)
		fprintf(stderr, "is %s stopped or overloaded?\n", program);
	else
		fprintf(stderr, "is %s running, with --metrics %s?\n", program, name);
}

int endpoint_ask(const char *program, const struct metrics_address *where)
{
	char *answer = malloc(ANSWER_MAX + 1), name[METRICS_ADDRESS_STRLEN];
	int fd = answer ? open_connection(where) : -ENOMEM;
	ssize_t len = fd < 0 ? fd : exchange(fd, answer);
	const char *body = len < 0 ? NULL : find_body(answer);

	metrics_address_format(where, name);
	if (fd >= 0)
		close(fd);
	if (body)
		print_body(body);
	else if (len < 0)
		tell_failure(program, name, (int)-len);
	else
		fprintf(stderr, "%s: status: %s: no %s answers there\n", program, name, program);
	free(answer);
	return body && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
