/* SPDX-License-Identifier: BSD-3-Clause */
/* relay_pipe.h - moves bytes from socket to socket through pipes, without copying them */
#ifndef RELAY_RELAY_PIPE_H
#define RELAY_RELAY_PIPE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The capacity of a pipe in bytes; Linux lets any user have this much (fs.pipe-max-size). */
#define RELAY_PIPE_SIZE (256 * 1024)

struct relay_pipe;

/* The pipes of one event loop. It keeps one unused pipe as a spare, and closes the others. */
struct relay_pipes {
	struct relay_pipe *spare;
	size_t count; /* the number of open pipes, the spare included */
	size_t max;   /* the number of pipes that may be in use, of two descriptors each; 0: none */
	_Atomic uint64_t *in_use; /* a metric that counts the pipes in use; or NULL */
};

/* Makes the spare pipe. If that fails (no descriptors, no memory) bytes are copied. The caller sets @max and @in_use then. */
void relay_pipes_init(struct relay_pipes *pipes);

/* Closes the spare pipe. All others must have been given back. */
void relay_pipes_fini(struct relay_pipes *pipes);

/* Returns an empty pipe, or NULL if @max are in use or none can be made. */
struct relay_pipe *relay_pipe_get(struct relay_pipes *pipes);

/* Gives a pipe back; bytes that are still in it are lost. NULL is fine. */
void relay_pipe_put(struct relay_pipes *pipes, struct relay_pipe *pipe);

/*
 * relay_pipe_fill() - take up to @len bytes from a socket into an empty pipe
 * Returns bytes, 0 at the end of the stream, or -1 with errno, as recv() does.
 */
ssize_t relay_pipe_fill(struct relay_pipe *pipe, int fd, size_t len);

/* relay_pipe_drain() - write the pipe's bytes to a socket, without waiting. Returns bytes, or -1 with errno, as send() does. */
ssize_t relay_pipe_drain(struct relay_pipe *pipe, int fd);

/* Returns the number of bytes in the pipe. */
size_t relay_pipe_len(const struct relay_pipe *pipe);

#endif
