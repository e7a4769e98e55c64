/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay_pipe.c - moves bytes from socket to socket through pipes, without copying them
 *
 * splice() moves references to the pages of received segments into a pipe, and from there into
 * another socket. splice() has no MSG_NOSIGNAL, so the process must ignore SIGPIPE.
 *
 * A pipe that is given back empty becomes the spare one if there is none. Any other is closed, and a missing spare one is made.
 */
#include "config.h"

#include "relay/relay.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * At most PIPES_MAX, and one in PIPES_PART of the descriptors, since connections need descriptors more than a transfer
 * needs a pipe: 9,800 connections fit into 20,000 descriptors.
 */
#define PIPES_MAX 256
#define PIPES_PART 512

struct relay_pipe {
	int out, in;
	size_t len;
};

static void pipe_destroy(struct relay_pipes *pipes, struct relay_pipe *pipe)
{
	close(pipe->out);
	close(pipe->in);
	free(pipe);
	pipes->count--;
}

static struct relay_pipe *pipe_create(struct relay_pipes *pipes)
{
	struct relay_pipe *pipe = malloc(sizeof(*pipe));
	int fds[2];

	if (!pipe || pipe2(fds, O_NONBLOCK | O_CLOEXEC) < 0) {
		free(pipe);
		return NULL;
	}
	pipe->out = fds[0];
	pipe->in = fds[1];
	pipe->len = 0;
	pipes->count++;
	/* The kernel denies large pipes to a user who has many (fs.pipe-user-pages-soft), and a small one isn't worth it. */
	if (fcntl(pipe->in, F_SETPIPE_SZ, RELAY_PIPE_SIZE) >= RELAY_PIPE_SIZE)
		return pipe;
	pipe_destroy(pipes, pipe);
	return NULL;
}

static struct relay_pipe *count_use(struct relay_pipes *pipes, struct relay_pipe *pipe, uint64_t by)
{
	if (pipe && pipes->in_use)
		atomic_fetch_add_explicit(pipes->in_use, by, memory_order_relaxed);
	return pipe;
}

size_t relay_pipes_fit(uint64_t files)
{
	return files / PIPES_PART < PIPES_MAX ? (size_t)(files / PIPES_PART) : PIPES_MAX;
}

void relay_pipes_init(struct relay_pipes *pipes)
{
	pipes->in_use = NULL;
	pipes->count = 0;
	pipes->max = 0;
	pipes->spare = pipe_create(pipes);
}

void relay_pipes_fini(struct relay_pipes *pipes)
{
	if (pipes->spare)
		pipe_destroy(pipes, pipes->spare);
	pipes->spare = NULL;
}

struct relay_pipe *relay_pipe_get(struct relay_pipes *pipes)
{
	struct relay_pipe *pipe = pipes->spare;

	if (pipes->count - (pipe != NULL) >= pipes->max)
		return NULL;
	pipes->spare = NULL;
	return count_use(pipes, pipe ? pipe : pipe_create(pipes), 1);
}

void relay_pipe_put(struct relay_pipes *pipes, struct relay_pipe *pipe)
{
	if (!pipe)
		return;
	count_use(pipes, pipe, (uint64_t)-1);
	if (!pipe->len && !pipes->spare) {
		pipes->spare = pipe;
		return;
	}
	pipe_destroy(pipes, pipe);
	if (!pipes->spare)
		pipes->spare = pipe_create(pipes);
}

ssize_t relay_pipe_fill(struct relay_pipe *pipe, int fd, size_t len)
{
	ssize_t n = splice(fd, NULL, pipe->in, NULL, len < RELAY_PIPE_SIZE ? len : RELAY_PIPE_SIZE,
			   SPLICE_F_NONBLOCK | SPLICE_F_MOVE);

	if (n > 0)
		pipe->len = (size_t)n;
	return n;
}

ssize_t relay_pipe_drain(struct relay_pipe *pipe, int fd)
{
	ssize_t n = splice(pipe->out, NULL, fd, NULL, pipe->len, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);

	if (n > 0)
		pipe->len -= (size_t)n;
	return n;
}

size_t relay_pipe_len(const struct relay_pipe *pipe)
{
	return pipe->len;
}
