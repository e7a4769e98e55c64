/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connect.h - the parts of one connection, for src/shim/connect and those above it: the engine's operations, another socket in its place,
 * the end, other processes, io_uring. conversion.h and gate.h have the calls of the hooks.
 */
#ifndef SHIM_CONNECT_H
#define SHIM_CONNECT_H

#include "shim/socket/conn.h"

/* --- operations.c: the engine's operations on an application's socket (engine/dial.h), and the shim's own --- */

/* Call it before any connection. @settings: must stay */
void operations_init(const struct settings *settings);

/*
 * operations_begin() - begin to connect @conn to @server
 * @conn: claimed, after conn_begin(). Asks the kernel whether the application has chosen a network.
 */
void operations_begin(struct conn *conn, int fd, const union sockaddr_ip *server);

/* operations_dial() - return the dial of the claimed @conn, with all that the application has done; before each call of the engine */
struct dial *operations_dial(struct conn *conn, int fd);

/* Returns which converters may be asked for the claimed @conn. @server: must stay as long as the query */
struct converters_query operations_query(const struct conn *conn, int fd, const union sockaddr_ip *server);

/*
 * operations_resolve() - look for a converter, and resolve names if necessary
 * Only this function may block, so the caller must have no claim. Returns whether there is a converter; if not, @end has the reason.
 */
bool operations_resolve(struct converters_query query, struct dial_end *end);

/* Makes the socket fit for @to, and converts @to to the socket's form: ops->fit(). Returns 0 or -errno. */
int operations_fit(struct conn *conn, int fd, union sockaddr_ip *to, bool mptcp);

/*
 * operations_connect() - connect(2) that doesn't block, whatever the mode of the socket
 * connect(2) has no flag for that, unlike sendmsg(2), so we set O_NONBLOCK for a moment. operations_may_block() hides that from other
 * threads. The conn is claimed. Returns 0 or -errno.
 */
int operations_connect(struct conn *conn, int fd, const union sockaddr_ip *to);

/*
 * operations_may_block() - would a call with @flags (MSG_DONTWAIT) on the descriptor @fd of @conn block?
 * @conn: NULL if the socket has none. An O_NONBLOCK that operations_connect() has set for a moment doesn't count.
 */
bool operations_may_block(const struct conn *conn, int fd, int flags);

/* Replaces an unconnected socket by one of the same kind, bound to nothing but what the application has chosen, if that is possible. */
void operations_renew(struct conn *conn, int fd);

/*
 * operations_leave_device() - replace the unconnected socket if an earlier attempt has bound it to another network than the next one's
 * If that fails, path_start_bind() does.
 */
void operations_leave_device(struct conn *conn, int fd);

/* Switches the application's TCP_FASTOPEN_CONNECT off, so that it doesn't defer our SYN. */
void operations_fastopen_off(struct conn *conn, int fd);

/* Ends the attempt: restores the socket's options, and stops watching the path. */
void operations_end(struct conn *conn, int fd);

/* Returns the error of the socket, a positive errno, once; @fallback if there is none. */
int operations_error(struct conn *conn, int fd, int fallback);

/* --- replace.c: puts another socket under the descriptors of the application's --- */

/*
 * replace_is_possible() - can another socket replace that of @conn while it isn't connected?
 * False if somebody could notice it: another process has the socket, or we can't repeat one of its options or epoll registrations on
 * another one. Its only system call is getpid(2).
 */
bool replace_is_possible(const struct conn *conn);

/* Can a Multipath TCP socket replace it? Also false if the application has set an option that Multipath TCP lacks. */
bool replace_may_be_mptcp(const struct conn *conn);

/*
 * replace_socket() - replace the socket of @conn by a new one of @domain and @protocol
 * @conn: claimed; its socket isn't connected
 * @fd: one of its descriptors; all known descriptors then refer to the new socket
 * @protocol: IPPROTO_TCP or IPPROTO_MPTCP
 *
 * Copies the options, the flags and the address that the application has bound the socket to. Removes the epoll registrations;
 * watch_resume() makes them again once the new socket connects, since an unconnected socket reports a hang-up. Returns false with nothing
 * changed if it is impossible.
 */
bool replace_socket(struct conn *conn, int fd, int domain, int protocol);

/*
 * Linux keeps the address of a failed attempt in the socket, where it looks as if the application had bound the socket to it.
 * replace_note_address() notes it after an attempt; replace_is_bound() tells whether the socket has another one.
 */
void replace_note_address(struct conn *conn, int fd);
bool replace_is_bound(const struct conn *conn, int fd);

/*
 * replace_with_tcp() - replace the Multipath TCP socket that an earlier attempt has left in an IDLE @conn by a TCP one
 * Claims @conn; the caller calls watch_resume(). Does nothing if the socket isn't a Multipath TCP one.
 */
void replace_with_tcp(struct conn *conn, int fd);

/*
 * replace_sever() - replace the socket of @conn in this process by an unconnected TCP one
 * The old socket stays as it is, with its epoll registrations, for the other process that has it. Closes the descriptors if there is no new
 * socket.
 */
void replace_sever(struct conn *conn);

/* replace_descriptor() - put an unconnected TCP socket under @fd alone, or close it: for the program that a vfork() child starts */
void replace_descriptor(int fd);

/*
 * replace_tcp_like() - make a TCP socket with the options that we remember as advice for @conn (app_options.h)
 * The caller can ask it for options that Multipath TCP lacks. Returns a descriptor, which the caller closes, or -1.
 */
int replace_tcp_like(const struct conn *conn, int fd);

/* --- settle.c: shows the end of a dial to the application, and connects to the server itself --- */

/* All functions need a claimed conn and never block. They return the phase to release it in. */

/* settle() - act on the result of one of the engine's functions: @state, and @end, which DIRECT doesn't need */
enum conn_phase settle(struct conn *conn, int fd, enum dial_state state, struct dial_end *end);

/*
 * settle_hand_over() - leave the socket to the application
 * Restores its options and epoll registrations, and makes up for a shutdown() that it called before.
 */
void settle_hand_over(struct conn *conn, int fd);

/* settle_unfinished() - connect directly, or fail, since no thread will continue the handshake */
enum conn_phase settle_unfinished(struct conn *conn, int fd);

/* settle_early_data() - send early data to the server itself, and then leave the connection to the kernel */
enum conn_phase settle_early_data(struct conn *conn, int fd);

/*
 * settle_given_up_here() - give up, in this process, a handshake that belongs to another one
 * That process keeps its socket unchanged. Here an unconnected one replaces it, and reports ECONNREFUSED.
 */
enum conn_phase settle_given_up_here(struct conn *conn);

/* --- connections over Multipath TCP to a server that speaks it, without a converter --- */

/*
 * bypass_begin() - connect the claimed @conn to its server
 * Returns 0 if the caller must release @conn in CONN_BYPASS; 1, with nothing sent, if it is impossible; or -errno.
 */
int bypass_begin(struct conn *conn, int fd);

/*
 * bypass_step() - take a step of such a connection; its conn is claimed
 * The SYN+ACK shows whether the server speaks Multipath TCP; the server's first bytes show whether the path passes it behind the handshake.
 * Returns the phase to release the conn in.
 */
enum conn_phase bypass_step(struct conn *conn, int fd);

/* --- follow.c: silent requests whose end other processes learn, too --- */

/* Does a silent request get a response, by the kernel's facts? */
enum silence {
	SILENCE_NONE, /* it does, like any request that isn't silent */
	SILENCE_OPEN, /* the SYN+ACK will show it */
	SILENCE_KEPT, /* it doesn't: the stream is the server's */
};

/* Has @conn, which is claimed, sent the whole of a silent request that waits for its SYN+ACK? */
bool follow_is_silent(const struct conn *conn);

/* Can another process that has the socket follow it? It can if the request is silent, and follow_note() has noted its SYN. */
bool follow_is_possible(const struct conn *conn);

/* Notes the SYN of @conn that others may follow. */
void follow_note(struct conn *conn, int fd);

/*
 * follow_look() - return the kernel's facts about a silent request that this process or another one has sent
 * SILENCE_NONE: it had another end, or was begun anew. Works in a vfork() child as well.
 */
enum silence follow_look(const struct conn *conn, int fd);

/* follow_adopt() - follow a silent request that another program has sent: sets its deadlines */
void follow_adopt(struct conn *conn);

/* Takes a step of a claimed conn that follows another process. Returns the phase to release it in. */
enum conn_phase follow_step(struct conn *conn, int fd);

/*
 * follow_is_reached() - has @conn, which follows another process and whose deadline is over, reached its server?
 * Then it has no deadline any more, and is still pending. The socket is writable, so the application's next wait or call settles it.
 */
bool follow_is_reached(struct conn *conn, int fd);

/* follow_in_child() - after fork() and conn_repair_in_child(): follow the handshakes that can be followed, and give the others up */
void follow_in_child(void);

/* --- ring_use.c: connections that a program may use past the hooks at once, by io_uring --- */

/*
 * ring_use_may_return() - may connect() return before @conn, which begins now, is connected?
 * It may if the program will probably call a hook before it uses the connection. Otherwise connect() waits, and then calls
 * ring_use_waited().
 */
bool ring_use_may_return(const struct conn *conn);
void ring_use_waited(const struct conn *conn);

/* Notes that the application asks for the error of the connected @conn: this shows whether it asks before it uses a connection. */
void ring_use_asked(const struct conn *conn, int fd);

/* Notes that the application closes the connected @conn without having asked for its error. */
void ring_use_left(const struct conn *conn, int fd);

/*
 * ring_use_take_back() - end the connection of a blind request, so that another one can begin; the application's calls wait for that
 * @conn is claimed. Returns false if none may begin: the application has sent something or closes the socket, or this was called before.
 */
bool ring_use_take_back(struct conn *conn, int fd);

/*
 * ring_use_renew() - after that, replace the socket that a ring may wait for, in order to make a request with a response
 * The new socket is unconnected; the caller calls watch_resume(). Returns false, with nothing changed, if it is impossible.
 */
bool ring_use_renew(struct conn *conn, int fd);

#endif
