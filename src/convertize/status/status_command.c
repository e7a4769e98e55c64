/* SPDX-License-Identifier: BSD-3-Clause */
/* status_command.c - "convertize status" and "convertize top": looks twice for one answer, or again and again */
#include "config.h"

#include "convertize/status/status.h"

#include "common/columns.h"
#include "convertize/check/check.h"
#include "convertize/options/command_line.h"
#include "convertize/run/launch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#define RATE_MS 300 /* between the two looks of one answer */
#define WATCH_MS 1000

static struct settings settings;
static struct status_parts parts;
static struct status_sockets earlier;
static struct check_addresses converters;
static struct traffic traffic;
static struct quotas quotas;

/* Reads the sockets, and keeps those of the look before. Returns 0 or -errno. */
static int look(void)
{
	struct status_sockets before = earlier;

	earlier = parts.sockets;
	parts.sockets = before;
	return status_sockets_read(&parts.sockets);
}

/* Reads the service's sums, and adds the bytes that the devices have counted since it wrote them. */
static void find_traffic(struct status_view *out)
{
	const struct traffic_choice choice = { .quotas = &quotas };

	out->traffic_error = traffic_load(&traffic);
	out->today = traffic_today();
	out->quotas = &quotas;
	if (out->traffic_error == 0 && *traffic.boot && traffic_look(&traffic, &choice, NULL) == 0)
		out->traffic = &traffic;
}

/* Makes the view of the last look. Returns false if memory runs out. */
static bool find(struct status_view *out)
{
	static struct host host;

	host_fini(&host);
	host_read(&host, NULL);
	parts.host = &host;
	if (!status_owners_find(&parts))
		return false;
	status_notes_read(&parts, &settings);
	if (!status_join(out, &parts, earlier.read ? &earlier : NULL))
		return false;
	find_traffic(out);
	return true;
}

static bool wants_colours(void)
{
	const char *term = getenv("TERM"), *without = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0 && (!without || !*without);
}

static void draw(FILE *out, unsigned int width)
{
	const struct status_style style = { width ? width : COLUMNS_USUAL, wants_colours(), true };
	struct status_view view;
	int ret = look();

	if (ret < 0)
		fprintf(out, "connections can't be read: %s\n", strerror(-ret));
	else if (find(&view)) {
		status_view_order(&view);
		status_print(out, &view, &style);
		status_view_fini(&view);
	}
}

/* --- convertize top --- */

/*
 * Each picture is one write: from the top, each line with its rest cleared, and the lines below cleared at the end. So nothing flickers.
 * The alternate screen keeps the terminal's text. Signals arrive by a descriptor, so that we restore the terminal before we end or, at
 * SIGTSTP (Ctrl-Z), stop; SIGCONT begins anew.
 */

#define ENTER "\x1b[?1049h\x1b[?25l"
#define LEAVE "\x1b[?25h\x1b[?1049l"
#define HOME "\x1b[H"
#define CLEAR_LINE "\x1b[K"
#define CLEAR_REST "\x1b[J"

static struct termios terminal_before;
static bool has_keys;

static void terminal_write(const char *text, size_t len)
{
	while (len) {
		ssize_t done = write(STDOUT_FILENO, text, len);

		if (done <= 0)
			return;
		text += done;
		len -= (size_t)done;
	}
}

static void terminal_enter(void)
{
	struct termios raw;

	has_keys = tcgetattr(STDIN_FILENO, &terminal_before) == 0;
	raw = terminal_before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO); /* Ctrl-C remains a signal */
	if (has_keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	terminal_write(ENTER, strlen(ENTER));
}

static void terminal_leave(void)
{
	terminal_write(LEAVE, strlen(LEAVE));
	if (has_keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
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
		terminal_write(picture, len);
	free(picture);
}

/* Waits for a key, a signal or the end of the interval. Returns false when it is time to end. */
static bool await(int signals)
{
	struct pollfd ready[] = { { .fd = signals, .events = POLLIN }, { .fd = has_keys ? STDIN_FILENO : -1, .events = POLLIN } };
	struct signalfd_siginfo info;
	char key;

	poll(ready, 2, WATCH_MS);
	if (ready[1].revents && (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q' || key == '\x03'))
		return false;
	if (!ready[0].revents || read(signals, &info, sizeof(info)) != (ssize_t)sizeof(info) || info.ssi_signo == SIGWINCH)
		return true;
	if (info.ssi_signo != SIGTSTP)
		return false;
	terminal_leave();
	raise(SIGSTOP);
	terminal_enter();
	return true;
}

/* Shows the connections on the terminal again and again, until q, Ctrl-C or a signal ends it; leaves the terminal as it was. */
static void watch(void)
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
	terminal_enter();
	do {
		char *text = NULL;
		size_t len;
		FILE *stream = open_memstream(&text, &len);

		if (stream) {
			draw(stream, columns_of(stdout));
			if (fclose(stream) == 0)
				show(text);
		}
		free(text);
		goes_on = await(signals);
	} while (goes_on);
	terminal_leave();
	if (signals >= 0)
		close(signals);
	sigprocmask(SIG_SETMASK, &mask, NULL);
}

/* --- the commands --- */

static int show_once(bool json)
{
	const unsigned int width = columns_of(stdout);
	const struct status_style style = { width ? width : COLUMNS_USUAL, wants_colours(), false };
	struct status_view view;
	int ret = look();

	if (ret == 0) {
		poll(NULL, 0, RATE_MS);
		ret = look();
	}
	if (ret < 0 || !find(&view)) {
		fprintf(stderr, "convertize: connections can't be read: %s\n", strerror(ret < 0 ? -ret : ENOMEM));
		return STATUS_FAILED;
	}
	if (json)
		status_print_json(stdout, &view);
	else
		status_print(stdout, &view, &style);
	status_view_fini(&view);
	return fflush(stdout) == 0 ? EXIT_SUCCESS : STATUS_FAILED;
}

int status(struct options *options)
{
	static struct conf_files files; /* messages name them */
	const bool watches = options_has(options, OPTION_WATCH) || options->command == COMMAND_TOP;
	char problem[QUOTA_PROBLEM_MAX];

	if (!conf_load(&files, options, false) || !launch_read_settings(&settings, options, false))
		return STATUS_USAGE;
	if (!quotas_read(&quotas, getenv(option_table[OPTION_QUOTA].variable), problem)) {
		fprintf(stderr, "convertize: %s\n", problem);
		return STATUS_USAGE;
	}
	parts.user = geteuid();
	parts.all = parts.user == 0;
	check_addresses_find(&converters, &settings);
	check_addresses_warn(&converters);
	parts.converters = converters.list;
	parts.converter_count = converters.count;
	if (!watches || options_has(options, OPTION_JSON) || !isatty(STDOUT_FILENO))
		return show_once(options_has(options, OPTION_JSON));
	watch();
	return EXIT_SUCCESS;
}
