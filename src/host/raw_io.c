/* SPDX-License-Identifier: BSD-3-Clause */
/* raw_io.c - asks the kernel by netlink, with code that can run in a hook */
#include "config.h"

#include "host/raw_io.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* The kernel puts at most this many bytes into one message of a dump, unless the reader's buffer is larger (NLMSG_GOODSIZE). */
#define ANSWER_MAX 4096
#define BRIEF_ANSWER_MAX 512

int nl_open(int protocol)
{
	return raw_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
}

uint32_t nl_u32(const uint8_t *value, size_t len)
{
	uint32_t number = 0;

	memcpy(&number, value, len < sizeof(number) ? len : sizeof(number));
	return number;
}

void nl_attributes(const uint8_t *body, size_t len, size_t skip, nl_attribute_reader *read, void *arg)
{
	struct nlattr attribute;

	for (size_t at = NLMSG_ALIGN(skip); at + sizeof(attribute) <= len; at += NLA_ALIGN(attribute.nla_len)) {
		memcpy(&attribute, body + at, sizeof(attribute));
		if (attribute.nla_len < sizeof(attribute) || attribute.nla_len > len - at)
			break;
		read(arg, attribute.nla_type & NLA_TYPE_MASK, body + at + sizeof(attribute), attribute.nla_len - sizeof(attribute));
	}
}

struct answers {
	const struct nlmsghdr *question;
	nl_reader *read;
	void *arg;
	bool done;
	int error; /* 0 or -errno */
};

/* Returns the error number at the start of an error message, an acknowledgement (0), or the end of a dump. */
static int error_of(const uint8_t *message, size_t len)
{
	return len < NLMSG_LENGTH(4) ? -EBADMSG : (int)nl_u32(message + NLMSG_HDRLEN, 4);
}

static void read_messages(struct answers *answers, const uint8_t *bytes, size_t len)
{
	const bool single = !(answers->question->nlmsg_flags & (NLM_F_ACK | NLM_F_DUMP));
	struct nlmsghdr header;

	for (; len >= sizeof(header); bytes += NLMSG_ALIGN(header.nlmsg_len), len -= NLMSG_ALIGN(header.nlmsg_len)) {
		memcpy(&header, bytes, sizeof(header));
		if (header.nlmsg_len < sizeof(header) || NLMSG_ALIGN(header.nlmsg_len) > len) {
			answers->error = -EBADMSG;
			return;
		}
		if (header.nlmsg_seq != answers->question->nlmsg_seq)
			continue;
		if (header.nlmsg_type == NLMSG_ERROR || header.nlmsg_type == NLMSG_DONE) {
			answers->error = answers->error ? answers->error : error_of(bytes, header.nlmsg_len);
			answers->done = true;
		} else {
			answers->read(answers->arg, header.nlmsg_type, bytes + NLMSG_HDRLEN, header.nlmsg_len - NLMSG_HDRLEN);
			answers->done = single;
		}
	}
}

static int ask(int fd, const struct nlmsghdr *question, uint8_t *buf, size_t size, nl_reader *read, void *arg)
{
	struct answers answers = { .question = question, .read = read, .arg = arg };

	if (raw_sendto(fd, question, question->nlmsg_len, 0, NULL, 0) < 0)
		return -errno;
	while (!answers.done && !answers.error) {
		ssize_t len = raw_recv(fd, buf, size, MSG_DONTWAIT | MSG_TRUNC);

		if (len < 0 && errno == EINTR)
			continue;
		if (len > 0 && (size_t)len <= size)
			read_messages(&answers, buf, (size_t)len);
		else
			answers.error = len < 0 ? -errno : -EMSGSIZE;
	}
	return answers.error;
}

int nl_ask(int fd, const struct nlmsghdr *question, nl_reader *read, void *arg)
{
	/* Map the buffer: the caller may be a signal handler on a small alternate stack. */
	uint8_t *buf = mmap(NULL, ANSWER_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ret;

	if (buf == MAP_FAILED)
		return -ENOMEM;
	ret = ask(fd, question, buf, ANSWER_MAX, read, arg);
	munmap(buf, ANSWER_MAX);
	return ret;
}

int nl_ask_briefly(int fd, const struct nlmsghdr *question, nl_reader *read, void *arg)
{
	uint8_t buf[BRIEF_ANSWER_MAX];

	return ask(fd, question, buf, sizeof(buf), read, arg);
}
