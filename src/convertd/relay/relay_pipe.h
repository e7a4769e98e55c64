/* SPDX-License-Identifier: BSD-3-Clause */
/* relay_pipe.h - pipes through which bytes go from socket to socket without being copied */
#ifndef CONVERTD_RELAY_PIPE_H
#define CONVERTD_RELAY_PIPE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Bytes that a pipe takes; Linux lets anybody have this much (fs.pipe-max-size). */
#define RELAY_PIPE_SIZE (256 * 1024)

struct relay_pipe;

/* Of one event loop. One that isn't in use is kept at hand, others are closed. */
struct relay_pipes {
	struct relay_pipe *spare;
	size_t count; /* those there are */
	size_t max;   /* those there may be, two descriptors each; 0: none */
	_Atomic uint64_t *in_use; /* where those in use are counted, for others to read; or NULL */
};

/* Makes one, to have it at hand. Without pipes (no descriptors, no memory) bytes are copied. */
void relay_pipes_init(struct relay_pipes *pipes);

/* All that are in use must have been given back. */
void relay_pipes_fini(struct relay_pipes *pipes);

/* An empty pipe; NULL if there may be no more, or can't. */
struct relay_pipe *relay_pipe_get(struct relay_pipes *pipes);

/* Gives it back; bytes that are still in it are lost. NULL is fine. */
void relay_pipe_put(struct relay_pipes *pipes, struct relay_pipe *pipe);

/*
 * relay_pipe_fill() - take up to @len bytes from a socket into an empty pipe
 * Returns bytes, 0 at the end of the stream, or -1 with errno, as recv() does.
 */
ssize_t relay_pipe_fill(struct relay_pipe *pipe, int fd, size_t len);

/* relay_pipe_drain() - write what is in it to a socket. Returns as send(), which never blocks. */
ssize_t relay_pipe_drain(struct relay_pipe *pipe, int fd);

/* Bytes that are in it. */
size_t relay_pipe_len(const struct relay_pipe *pipe);

#endif
