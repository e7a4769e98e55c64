/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * screen.c - shows text on the terminal again and again, until q or a signal ends it
 *
 * Each picture is one write: from the top, each line with its rest cleared, and the lines below cleared at the end. So nothing flickers. The
 * alternate screen keeps what was on the terminal. Signals arrive by a descriptor, so that the terminal is restored after any but SIGKILL;
 * SIGTSTP (Ctrl-Z) restores it, too, and SIGCONT begins anew.
 */
#include "config.h"

#include "convertize/status/status.h"

#include "common/columns.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#define ENTER "\x1b[?1049h\x1b[?25l"
#define LEAVE "\x1b[?25h\x1b[?1049l"
#define HOME "\x1b[H"
#define CLEAR_LINE "\x1b[K"
#define CLEAR_REST "\x1b[J"

static struct termios before;
static bool has_keys;

static void put(const char *text, size_t len)
{
	while (len) {
		ssize_t done = write(STDOUT_FILENO, text, len);

		if (done <= 0)
			return;
		text += done;
		len -= (size_t)done;
	}
}

static void enter(void)
{
	struct termios raw;

	has_keys = tcgetattr(STDIN_FILENO, &before) == 0;
	raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO); /* Ctrl-C remains a signal */
	if (has_keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	put(ENTER, strlen(ENTER));
}

static void leave(void)
{
	put(LEAVE, strlen(LEAVE));
	if (has_keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

/* Writes as many lines of the text as the terminal has. */
static void show(char *text)
{
	struct winsize size = { .ws_row = 24 };
	char *picture = NULL, *line;
	size_t len, left;
	FILE *stream = open_memstream(&picture, &len);

	if (!stream)
		return;
	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	fputs(HOME, stream);
	left = size.ws_row ? size.ws_row : 24;
	while (left > 1 && (line = strsep(&text, "\n")) && text) {
		fprintf(stream, "%s" CLEAR_LINE "\r\n", line);
		left--;
	}
	fputs(text && *text ? "\x1b[0m… more than fits" CLEAR_LINE CLEAR_REST : "\x1b[0mq ends" CLEAR_LINE CLEAR_REST, stream);
	if (fclose(stream) == 0)
		put(picture, len);
	free(picture);
}

/* Waits for a key, a signal or the end of the interval. Returns false when it is time to end. */
static bool await(int signals, int interval_ms)
{
	struct pollfd ready[] = { { .fd = signals, .events = POLLIN }, { .fd = has_keys ? STDIN_FILENO : -1, .events = POLLIN } };
	struct signalfd_siginfo info;
	char key;

	poll(ready, 2, interval_ms);
	if (ready[1].revents && (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q' || key == '\x03'))
		return false;
	if (!ready[0].revents || read(signals, &info, sizeof(info)) != (ssize_t)sizeof(info) || info.ssi_signo == SIGWINCH)
		return true;
	if (info.ssi_signo != SIGTSTP)
		return false;
	leave();
	raise(SIGSTOP);
	enter();
	return true;
}

void screen_run(void (*draw)(FILE *out, unsigned int width, void *arg), void *arg, int interval_ms)
{
	static const int watched[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH };
	sigset_t set, mask;
	int signals;
	bool goes_on;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(watched) / sizeof(watched[0]); i++)
		sigaddset(&set, watched[i]);
	sigprocmask(SIG_BLOCK, &set, &mask);
	signals = signalfd(-1, &set, SFD_CLOEXEC);
	enter();
	do {
		char *text = NULL;
		size_t len;
		FILE *stream = open_memstream(&text, &len);

		if (stream) {
			draw(stream, columns_of(stdout), arg);
			if (fclose(stream) == 0)
				show(text);
		}
		free(text);
		goes_on = await(signals, interval_ms);
	} while (goes_on);
	leave();
	if (signals >= 0)
		close(signals);
	sigprocmask(SIG_SETMASK, &mask, NULL);
}
