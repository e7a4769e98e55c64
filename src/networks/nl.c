/* SPDX-License-Identifier: BSD-3-Clause */
/* nl.c - questions to the kernel by netlink, in the few lines that can run in a hook */
#include "config.h"

#include "networks/nl.h"

#include "networks/io.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* Larger than what the kernel puts into one message of a dump unless it is asked for more (NLMSG_GOODSIZE). */
#define ANSWER_MAX 4096

int nl_open(int protocol)
{
	return io_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
}

uint32_t nl_u32(const uint8_t *value, size_t len)
{
	uint32_t number = 0;

	memcpy(&number, value, len < sizeof(number) ? len : sizeof(number));
	return number;
}

void nl_attributes(const uint8_t *list, size_t len, nl_attribute_reader *read, void *arg)
{
	struct nlattr attribute;

	while (len >= sizeof(attribute)) {
		size_t step;

		memcpy(&attribute, list, sizeof(attribute));
		if (attribute.nla_len < sizeof(attribute) || attribute.nla_len > len)
			break;
		read(arg, attribute.nla_type & NLA_TYPE_MASK, list + sizeof(attribute), attribute.nla_len - sizeof(attribute));
		step = NLA_ALIGN(attribute.nla_len);
		if (step >= len)
			break;
		list += step;
		len -= step;
	}
}

struct answers {
	nl_reader *read;
	void *arg;
	bool done;
	bool failed;
};

static void read_messages(struct answers *answers, const uint8_t *bytes, size_t len)
{
	struct nlmsghdr header;

	for (; len >= sizeof(header); bytes += NLMSG_ALIGN(header.nlmsg_len), len -= NLMSG_ALIGN(header.nlmsg_len)) {
		memcpy(&header, bytes, sizeof(header));
		if (header.nlmsg_len < sizeof(header) || NLMSG_ALIGN(header.nlmsg_len) > len) {
			answers->failed = true;
			return;
		}
		if (header.nlmsg_type == NLMSG_ERROR || header.nlmsg_type == NLMSG_DONE) {
			/* Both begin with an error number, which is 0 in an acknowledgement. */
			answers->failed |= header.nlmsg_len < NLMSG_LENGTH(4) || nl_u32(bytes + NLMSG_HDRLEN, 4) != 0;
			answers->done = true;
		} else {
			answers->read(answers->arg, bytes + NLMSG_HDRLEN, header.nlmsg_len - NLMSG_HDRLEN);
		}
	}
}

bool nl_ask(int fd, const struct nlmsghdr *question, nl_reader *read, void *arg)
{
	struct answers answers = { .read = read, .arg = arg };
	/* Mapped: a signal handler on a stack of its own may be what asks. */
	uint8_t *answer = mmap(NULL, ANSWER_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (answer == MAP_FAILED)
		return false;
	answers.failed = io_sendto(fd, question, question->nlmsg_len, 0, NULL, 0) < 0;
	while (!answers.done && !answers.failed) {
		ssize_t len = io_recv(fd, answer, ANSWER_MAX, MSG_DONTWAIT | MSG_TRUNC);

		if (len > 0 && len <= ANSWER_MAX)
			read_messages(&answers, answer, (size_t)len);
		else
			answers.failed = true;
	}
	munmap(answer, ANSWER_MAX);
	return !answers.failed;
}
