/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clients.c - makes a client's cookie and prints the client's configuration (--new-client), or withdraws the cookie (--remove-client)
 *
 * Each client is a line of the file of --cookie-list: its cookie, and its name as a comment. We never write into that
 * file, but replace it by a new one with the same owner and rights, so that a reload reads either all of the old text
 * or all of the new one. A lock on the directory keeps two such changes apart. If the last cookie is withdrawn, one
 * that nobody knows takes its place: a list without any would be refused, and the old one would stay in force.
 *
 * The configuration goes to standard output, so that it can be written into a file, and all other forms go to standard error.
 */
#include "config.h"

#include "convertd/config/convertd_settings.h"

#include "convertd/policy/cookies.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef HAVE_LIBQRENCODE
#include <qrencode.h>
#endif

/* Random bytes of a cookie; their text takes a third more. */
#define COOKIE_BYTES 18
#define COOKIE_TEXT_MAX (2 * COOKIE_BYTES)

/* Room for a line that we write. */
#define LINE_MAX_LEN (COOKIE_TEXT_MAX + 64)

/* The file of cookies. */
struct list {
	char path[PATH_MAX]; /* of the file itself, not of a symbolic link to it */
	bool exists;
	struct stat st;
	char *text; /* of @len bytes */
	size_t len;
	int lock;
};

/* Says why the option can't be carried out. Returns false. */
static bool fail(const char *option, const char *name, const char *text)
{
	fprintf(stderr, "convertd: --%s: %s: %s\n", option, name, text);
	return false;
}

static void print_line(const char *line)
{
	fprintf(stderr, "convertd: %s\n", line);
}

static void list_close(struct list *list)
{
	if (list->text)
		sodium_memzero(list->text, list->len);
	free(list->text);
	if (list->lock >= 0)
		close(list->lock);
}

/* Locks the directory of the file and reads the file, which may be missing. Returns false after saying why. */
static bool list_open(struct list *list, const struct convertd_settings *settings, const char *option)
{
	const struct settings_path *file = &settings->cookie_list;
	struct problems problems = { .print = print_line };
	uid_t owner = settings->user.uid ? settings->user.uid : geteuid();
	char copy[PATH_MAX];

	if (!file->name[0])
		return fail(option, settings->client_name,
			    "there is no list of cookies; add \"cookie-list /etc/convertd/cookies\" to the configuration");
	if (!realpath(file->name, list->path))
		snprintf(list->path, sizeof(list->path), "%s", file->name);
	snprintf(copy, sizeof(copy), "%s", list->path);
	list->lock = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (list->lock < 0 || flock(list->lock, LOCK_EX) < 0)
		return fail(option, list->path, strerror(errno));
	list->exists = stat(list->path, &list->st) == 0;
	if (!list->exists && errno == ENOENT)
		list->text = calloc(1, 1);
	else
		list->text = textfile_read(list->path, &owner, &list->len, &file->place, &problems);
	return list->text != NULL;
}

/* Gives the new file the rights of the old one; without one, those of user_set_rights(). Returns 0 or -1 with errno set. */
static int set_rights(int fd, const struct list *list, const struct convertd_settings *settings)
{
	if (!list->exists)
		return user_set_rights(&settings->user, fd);
	return fchown(fd, list->st.st_uid, list->st.st_gid) < 0 ? -1 : fchmod(fd, list->st.st_mode & 07777);
}

static bool write_all(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno != EINTR)
			return false;
		text += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* Replaces the file by one with the first @kept bytes of its text, @added, and the text from @rest on. Returns 0 or -errno. */
static int list_write(const struct list *list, const struct convertd_settings *settings, size_t kept, const char *added, size_t rest)
{
	char path[PATH_MAX];
	int fd, error = 0;

	if (snprintf(path, sizeof(path), "%s.XXXXXX", list->path) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!write_all(fd, list->text, kept) || !write_all(fd, added, strlen(added)) ||
	    !write_all(fd, list->text + rest, list->len - rest) || set_rights(fd, list, settings) < 0 || fsync(fd) < 0 ||
	    rename(path, list->path) < 0)
		error = -errno;
	close(fd);
	if (error)
		unlink(path);
	else
		fsync(list->lock);
	return error;
}

/* Finds the line of a client: sets @from to its first byte and @to behind its last one. Returns false if there is none. */
static bool find_client(const struct list *list, const char *name, size_t *from, size_t *to)
{
	for (*from = 0; *from < list->len; *from = *to) {
		const char *line = list->text + *from, *newline = memchr(line, '\n', list->len - *from);
		char found[COOKIES_NAME_MAX + 1];

		*to = newline ? (size_t)(newline - list->text) + 1 : list->len;
		if (line[strspn(line, " \t")] != '#' && cookies_line_name(line, list->text + *to, found) &&
		    strcmp(found, name) == 0)
			return true;
	}
	return false;
}

/* Tells whether the list has a cookie besides the bytes from @from to @to. */
static bool has_others(const struct list *list, size_t from, size_t to)
{
	struct lines lines;
	bool has_nul, any = false;
	char *copy = malloc(list->len + 1);

	if (!copy)
		return true;
	memcpy(copy, list->text, from);
	memcpy(copy + from, list->text + to, list->len - to);
	lines_first(&lines, copy, list->len - (to - from));
	while (!any && lines_next(&lines, &has_nul))
		any = true;
	free(copy);
	return any;
}

static void draw_cookie(char text[static COOKIE_TEXT_MAX])
{
	uint8_t cookie[COOKIE_BYTES];

	randombytes_buf(cookie, sizeof(cookie));
	sodium_bin2base64(text, COOKIE_TEXT_MAX, cookie, sizeof(cookie), sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

/* ----- the address by which clients reach this host ----- */

static bool is_specific(const union sockaddr_ip *address)
{
	struct in6_addr in6 = sockaddr_ip_in6(address);
	const uint8_t *v4 = &in6.s6_addr[12];

	if (sockaddr_ip_is_v4(address))
		return v4[0] != 0 && v4[0] != 127;
	return !IN6_IS_ADDR_UNSPECIFIED(&in6) && !IN6_IS_ADDR_LOOPBACK(&in6) && !IN6_IS_ADDR_LINKLOCAL(&in6);
}

/* Sets @out to this host's address towards the Internet. Nothing is sent: connect() of UDP asks for the route only. */
static bool ask_kernel(union sockaddr_ip *out)
{
	static const struct in6_addr public[] = { { { { [10] = 0xff, 0xff, 8, 8, 8, 8 } } },
						  { { { 0x20, 0x01, 0x48, 0x60 } } } };

	for (size_t i = 0; i < sizeof(public) / sizeof(public[0]); i++) {
		union sockaddr_ip to = { 0 };
		socklen_t len = sizeof(*out);
		bool known;
		int fd;

		sockaddr_ip_set(&to, AF_UNSPEC, &public[i], 53);
		fd = socket(to.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		known = fd >= 0 && connect(fd, &to.sa, sockaddr_ip_len(&to)) == 0 && getsockname(fd, &out->sa, &len) == 0;
		if (fd >= 0)
			close(fd);
		if (known && is_specific(out))
			return true;
	}
	return false;
}

/*
 * Sets @out to the address that clients are to be given, with its port: one of --own-address or --shared-address, which
 * a NAT in front may have, or else one of --listen, or else this host's own. Returns false if none is known.
 */
static bool find_address(const struct convertd_settings *settings, union sockaddr_ip *out)
{
	uint16_t port = sockaddr_ip_port(&settings->listen[0].address);

	for (size_t i = 0; i < settings->access.host_count; i++)
		if (settings->access.host[i].length == 128) {
			sockaddr_ip_set(out, AF_UNSPEC, &settings->access.host[i].address, port);
			return true;
		}
	for (size_t i = 0; i < settings->listen_count; i++)
		if (is_specific(&settings->listen[i].address)) {
			*out = settings->listen[i].address;
			return true;
		}
	if (!ask_kernel(out))
		return false;
	sockaddr_ip_set_port(out, port);
	return true;
}

/* Tells whether strangers can reach the address: no built-in rule denies it as a destination. */
static bool is_public(const struct convertd_settings *settings, const union sockaddr_ip *address)
{
	struct in6_addr in6 = sockaddr_ip_in6(address);
	const struct access_rule *rule = access_rules_find(&settings->access.destinations, &in6, 443);

	return !rule || !rule->builtin;
}

/* ----- the client's configuration ----- */

#ifdef HAVE_LIBQRENCODE

/* The light margin around a code, in modules, which scanners need. */
#define MARGIN 2

static bool is_light(const QRcode *code, int x, int y)
{
	return x < 0 || y < 0 || x >= code->width || y >= code->width || !(code->data[y * code->width + x] & 1);
}

/* Prints a QR code of the text to a terminal of any colours: each character shows two modules, one above the other. */
static void print_code(const char *text)
{
	static const char *const halves[2][2] = { { " ", "\342\226\204" }, { "\342\226\200", "\342\226\210" } };
	QRcode *code = QRcode_encodeString8bit(text, 0, QR_ECLEVEL_L);

	if (!code)
		return;
	for (int y = -MARGIN; y < code->width + MARGIN; y += 2) {
		fputs("\033[40;37;1m", stderr);
		for (int x = -MARGIN; x < code->width + MARGIN; x++)
			fputs(halves[is_light(code, x, y)][is_light(code, x, y + 1)], stderr);
		fputs("\033[0m\n", stderr);
	}
	QRcode_free(code);
}

#else

static void print_code(const char *text)
{
	(void)text;
	fputs("(no QR code: convertd was built without libqrencode)\n", stderr);
}

#endif

static void print_client(const struct convertd_settings *settings, const char *cookie)
{
	char address[SOCKADDR_STRLEN] = "ADDRESS:PORT", text[SOCKADDR_STRLEN + COOKIE_TEXT_MAX + 64];
	union sockaddr_ip converter;
	bool known = find_address(settings, &converter);

	if (known)
		sockaddr_ip_format(&converter, address);
	snprintf(text, sizeof(text), "converter %s\ncookie %s\n", address, cookie);
	printf("%s", text);
	fflush(stdout);
	fprintf(stderr,
		"\nThe lines above are %s's /etc/convertize.conf or ~/.config/convertize.conf. For one shell instead, paste:\n\n"
		"export CONVERT_ADDR=%s CONVERT_COOKIE=%s\n\n",
		settings->client_name, address, cookie);
	print_code(text);
	if (!known || !is_public(settings, &converter))
		fprintf(stderr, "\nClients elsewhere can't reach %s: name this host's public address with own-address, or write it there\n",
			address);
	fputs("\nThe cookie is in force once convertd has read its list again: systemctl reload convertd\n", stderr);
}

/* Writes the line to add: the client's, or nobody's if the list would be empty, or "". @others: the list has other cookies */
static void make_line(const struct convertd_settings *settings, const struct list *list, const char *cookie, bool adds, bool others,
		      char text[static LINE_MAX_LEN])
{
	bool open_line = list->len && list->text[list->len - 1] != '\n';

	text[0] = '\0';
	if (adds)
		snprintf(text, LINE_MAX_LEN, "%s%s # %s\n", open_line ? "\n" : "", cookie, settings->client_name);
	else if (!others)
		snprintf(text, LINE_MAX_LEN, "%s # nobody's: it keeps this list from being empty\n", cookie);
}

/* Changes the list. Returns false after saying why it can't. @cookie: set to the new one */
static bool change(const struct convertd_settings *settings, struct list *list, const char *option, char cookie[static COOKIE_TEXT_MAX])
{
	bool adds = settings->action == SETTINGS_NEW_CLIENT, found;
	char line[LINE_MAX_LEN];
	size_t from, to;
	int error;

	if (!list_open(list, settings, option))
		return false;
	found = find_client(list, settings->client_name, &from, &to);
	if (found == adds)
		return fail(option, settings->client_name,
			    adds ? "has a cookie already; withdraw it with --remove-client" :
				   "no line of the list ends with # and this name");
	draw_cookie(cookie);
	if (adds)
		from = to = list->len;
	make_line(settings, list, cookie, adds, has_others(list, from, to), line);
	error = list_write(list, settings, from, line, to);
	sodium_memzero(line, sizeof(line));
	return !error || fail(option, list->path, strerror(-error));
}

int clients_change(const struct convertd_settings *settings)
{
	bool adds = settings->action == SETTINGS_NEW_CLIENT, changed = false;
	const char *option = adds ? "new-client" : "remove-client";
	struct list list = { .lock = -1 };
	char cookie[COOKIE_TEXT_MAX];

	if (sodium_init() < 0)
		fail(option, settings->client_name, "no source of random numbers");
	else
		changed = change(settings, &list, option, cookie);
	list_close(&list);
	if (changed && adds)
		print_client(settings, cookie);
	else if (changed)
		fprintf(stderr, "%s is refused once convertd has read its list again: systemctl reload convertd\n",
			settings->client_name);
	sodium_memzero(cookie, sizeof(cookie));
	return changed ? EXIT_SUCCESS : EXIT_FAILURE;
}
