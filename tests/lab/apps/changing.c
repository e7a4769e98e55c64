/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * changing.c - a program whose second thread changes the arguments of the first one's calls, while the kernel or a supervisor reads them
 *
 *	changing SERVER PORT CONVERTER PORT WAY COUNT
 *
 * makes COUNT connections. WAY is what changes all the time, and how the first thread connects:
 *
 *	address      the address of connect(): the server's and the converter's
 *	output       likewise, of sendto(MSG_FASTOPEN)
 *	descriptor   the socket under the descriptor: a UDP socket, and a TCP one
 *
 * Prints how many calls succeeded.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define AT 20

static struct sockaddr_in addresses[2];
static union {
	struct sockaddr_in whole;
	_Atomic unsigned long long port_and_host; /* the family, too: the first eight bytes */
} now;
static int sockets[2];
static atomic_int running = 1;

static void *change_address(void *unused)
{
	unsigned long long values[2];

	memcpy(&values[0], &addresses[0], 8);
	memcpy(&values[1], &addresses[1], 8);
	for (unsigned int i = 0; atomic_load(&running); i++)
		atomic_store(&now.port_and_host, values[i & 1]);
	return unused;
}

static void *change_descriptor(void *unused)
{
	for (unsigned int i = 0; atomic_load(&running); i++)
		dup2(sockets[i & 1], AT);
	return unused;
}

static void parse(struct sockaddr_in *out, const char *host, const char *port)
{
	out->sin_family = AF_INET;
	inet_pton(AF_INET, host, &out->sin_addr);
	out->sin_port = htons((unsigned short)atoi(port));
}

int main(int argc, char *argv[])
{
	pthread_t thread;
	int descriptor, fastopen, count, made = 0, fd;

	if (argc < 7)
		return 2;
	parse(&addresses[0], argv[1], argv[2]);
	parse(&addresses[1], argv[3], argv[4]);
	now.whole = addresses[0];
	descriptor = strcmp(argv[5], "descriptor") == 0;
	fastopen = strcmp(argv[5], "output") == 0;
	count = atoi(argv[6]);
	sockets[0] = socket(AF_INET, SOCK_DGRAM, 0);
	if (!descriptor)
		pthread_create(&thread, NULL, change_address, NULL);
	for (int i = 0; i < count; i++) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (fd < 0)
			return 1;
		if (descriptor) {
			sockets[1] = fd;
			dup2(sockets[0], AT);
			atomic_store(&running, 1);
			pthread_create(&thread, NULL, change_descriptor, NULL);
			made += connect(AT, (struct sockaddr *)&now.whole, sizeof(now.whole)) == 0;
			atomic_store(&running, 0);
			pthread_join(thread, NULL);
		} else if (fastopen) {
			made += sendto(fd, "hello", 5, MSG_FASTOPEN, (struct sockaddr *)&now.whole, sizeof(now.whole)) == 5;
		} else {
			made += connect(fd, (struct sockaddr *)&now.whole, sizeof(now.whole)) == 0;
		}
		close(fd);
	}
	if (!descriptor) {
		atomic_store(&running, 0);
		pthread_join(thread, NULL);
	}
	printf("made=%d\n", made);
	return 0;
}
