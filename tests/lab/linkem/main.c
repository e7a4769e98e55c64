/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c - linkem, a link with delay, jitter, loss and a rate between two network namespaces
 *
 * Two TUN devices, one in each namespace, and this process between them: it needs no kernel module beyond TUN (sch_netem
 * isn't everywhere), behaves the same on every kernel and can do what a middlebox does to a packet. One thread polls both
 * devices and sleeps until a packet comes in or one is due; lane.c says what happens to it in between. The devices live as
 * long as the process.
 */
#include "config.h"

#include "linkem.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BATCH 32           /* packets from one side before the other gets its turn */
#define SETTING_OPTION 256 /* the value for getopt of the first row of settings_info() */

struct arguments {
	struct settings settings[LINKEM_WAY_COUNT];
	const char *control;
	uint64_t seed;
	int mtu;
	bool realtime;
	const char *namespaces[2], *devices[2];
};

static void help_print(void)
{
	size_t count;
	const struct setting_info *info = settings_info(&count);

	printf("Usage: linkem [options] NAMESPACE_A DEVICE_A NAMESPACE_B DEVICE_B\n"
		   "Join two new TUN devices, one in each network namespace (a path such as /run/netns/client),\n"
		   "by a link with these properties. Prints \"ready\" when both are up; runs until it is killed.\n\n"
		   "Both directions, or one by --a-to-b and --b-to-a; a later option wins:\n");
	for (size_t i = 0; i < count; i++)
		printf("  --%-14s %-8s %s\n", info[i].name, info[i].argument ? info[i].argument : "", info[i].help);
	printf("  --a-to-b         LIST     settings of one direction, such as \"delay=10ms loss=1%% strip-mptcp=on\"\n"
		   "  --b-to-a         LIST\n"
		   "The whole link:\n"
		   "  --mtu            BYTES    of the devices (1500)\n"
		   "  --seed           NUMBER   for loss and jitter (1)\n"
		   "  --control        PATH     a UNIX socket that takes lines: down, up, set loss 5%%, set a-to-b delay 5ms,\n"
		   "                            down b-to-a, stats, host 10.1.0.9 25ms, host 10.1.0.9 none\n"
		   "  --realtime                run under SCHED_FIFO where that is permitted\n");
}

static void list_apply(struct settings *settings, const char *list)
{
	char error[256];

	if (!settings_set_list(settings, list, error, sizeof error))
		errx(2, "%s", error);
}

static unsigned long number_parse(const char *option, const char *text, unsigned long least, unsigned long most)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-' || value < least || value > most)
		errx(2, "--%s: \"%s\" is not a number from %lu to %lu", option, text, least, most);
	return value;
}

/* Applies one row of settings_info() to both directions. */
static void setting_apply(struct arguments *arguments, const struct setting_info *info, const char *value)
{
	char error[256];

	for (int way = 0; way < LINKEM_WAY_COUNT; way++)
		if (!settings_set(&arguments->settings[way], info->name, value ? value : "on", error, sizeof error))
			errx(2, "--%s", error);
}

static void arguments_parse(struct arguments *arguments, int argc, char **argv)
{
	static const struct option fixed[] = {
		{ "a-to-b", required_argument, NULL, 'a' },   { "b-to-a", required_argument, NULL, 'b' },
		{ "mtu", required_argument, NULL, 'm' },      { "seed", required_argument, NULL, 's' },
		{ "control", required_argument, NULL, 'c' },  { "realtime", no_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
	};
	const size_t fixed_count = sizeof fixed / sizeof *fixed;
	struct option options[32] = { 0 };
	size_t count;
	const struct setting_info *info = settings_info(&count);
	int option;

	if (fixed_count + count >= sizeof options / sizeof *options)
		errx(1, "the table of options is too short");
	memcpy(options, fixed, sizeof fixed);
	for (size_t i = 0; i < count; i++)
		options[fixed_count + i] = (struct option){ info[i].name, info[i].argument ? required_argument : no_argument, NULL,
													SETTING_OPTION + (int)i };
	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (option) {
		case 'a': list_apply(&arguments->settings[LINKEM_A_TO_B], optarg); break;
		case 'b': list_apply(&arguments->settings[LINKEM_B_TO_A], optarg); break;
		case 'm': arguments->mtu = (int)number_parse("mtu", optarg, 68, 65535); break;
		case 's': arguments->seed = number_parse("seed", optarg, 0, UINT32_MAX); break;
		case 'c': arguments->control = optarg; break;
		case 'r': arguments->realtime = true; break;
		case 'h': help_print(); exit(0);
		default:
			if (option < SETTING_OPTION)
				errx(2, "see linkem --help");
			setting_apply(arguments, &info[option - SETTING_OPTION], optarg);
		}
	}
	if (argc - optind != 4)
		errx(2, "two namespaces and two devices are needed; see linkem --help");
	for (int side = 0; side < 2; side++) {
		arguments->namespaces[side] = argv[optind + 2 * side];
		arguments->devices[side] = argv[optind + 2 * side + 1];
	}
}

static void device_ioctl(int fd, unsigned long request, struct ifreq *ifr, const char *what)
{
	if (ioctl(fd, request, ifr) < 0)
		err(1, "%s: %s", ifr->ifr_name, what);
}

/* Enters the namespace and makes a TUN device there, up and with its MTU; returns the device's descriptor. */
static int tun_create(const char *namespace, const char *device, int mtu)
{
	struct ifreq ifr = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	int netns, tun, control;

	if (strlen(device) >= IFNAMSIZ)
		errx(2, "%s: a device's name has at most %d bytes", device, IFNAMSIZ - 1);
	netns = open(namespace, O_RDONLY | O_CLOEXEC);
	if (netns < 0)
		err(1, "%s", namespace);
	if (setns(netns, CLONE_NEWNET) < 0)
		err(1, "%s: setns", namespace);
	close(netns);
	tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (tun < 0)
		err(1, "/dev/net/tun (it needs \"modprobe tun\" and mode 0666, or root)");
	strcpy(ifr.ifr_name, device);
	device_ioctl(tun, TUNSETIFF, &ifr, "TUNSETIFF");
	control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (control < 0)
		err(1, "socket");
	ifr.ifr_mtu = mtu;
	device_ioctl(control, SIOCSIFMTU, &ifr, "set the MTU");
	device_ioctl(control, SIOCGIFFLAGS, &ifr, "get flags");
	ifr.ifr_flags |= IFF_UP;
	device_ioctl(control, SIOCSIFFLAGS, &ifr, "set up");
	close(control);
	return tun;
}

/* Delays are kept to the microsecond: by default a timer may be 50 microseconds late to save wake-ups. */
static void scheduling_set(bool realtime)
{
	const struct sched_param param = { .sched_priority = 1 };

	prctl(PR_SET_TIMERSLACK, 1);
	/* the system call itself, since musl's function always fails with ENOSYS */
	if (realtime && syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &param) < 0)
		warn("running without SCHED_FIFO");
}

static void wait_ready(struct pollfd *fds, nfds_t count, uint64_t due)
{
	struct timespec timeout = { 0 };

	if (due != UINT64_MAX) {
		uint64_t now = clock_now(), left = due > now ? due - now : 0;

		timeout.tv_sec = (time_t)(left / LINKEM_NS_PER_S);
		timeout.tv_nsec = (long)(left % LINKEM_NS_PER_S);
	}
	if (ppoll(fds, count, due == UINT64_MAX ? NULL : &timeout, NULL) < 0 && errno != EINTR)
		err(1, "ppoll");
}

static _Noreturn void link_run(const int tuns[2], struct lane *lanes[LINKEM_WAY_COUNT], struct control *control)
{
	struct pollfd fds[2 + CONTROL_FDS] = { { .fd = tuns[0], .events = POLLIN }, { .fd = tuns[1], .events = POLLIN } };

	for (;;) {
		uint64_t due = UINT64_MAX;

		for (int way = 0; way < LINKEM_WAY_COUNT; way++) {
			uint64_t next = lane_drain(lanes[way]);

			if (next < due)
				due = next;
		}
		if (control)
			control_poll(control, fds + 2);
		wait_ready(fds, control ? 2 + CONTROL_FDS : 2, due);
		for (int way = 0; way < LINKEM_WAY_COUNT; way++) {
			int got = fds[way].revents ? lane_fill(lanes[way], tuns[way], BATCH) : 0;

			/* EIO: the device is administratively down, and reports POLLERR until it is up */
			if (got < 0 && got != -EIO)
				errx(1, "reading a device: %s", strerror(-got));
			if (got > 0)
				lane_drain(lanes[way]);
		}
		if (control)
			control_dispatch(control, fds + 2);
	}
}

int main(int argc, char **argv)
{
	struct arguments arguments = { .mtu = 1500, .seed = 1 };
	struct lane *lanes[LINKEM_WAY_COUNT];
	struct control *control = NULL;
	int tuns[2];

	for (int way = 0; way < LINKEM_WAY_COUNT; way++)
		settings_init(&arguments.settings[way]);
	arguments_parse(&arguments, argc, argv);
	if (arguments.control && !(control = control_create(arguments.control, lanes)))
		err(1, "%s", arguments.control);
	for (int side = 0; side < 2; side++)
		tuns[side] = tun_create(arguments.namespaces[side], arguments.devices[side], arguments.mtu);
	for (int way = 0; way < LINKEM_WAY_COUNT; way++) {
		lanes[way] = lane_create(&arguments.settings[way], (enum linkem_way)way, (size_t)arguments.mtu, tuns[!way],
								 arguments.seed * LINKEM_WAY_COUNT + (uint64_t)way);
		if (!lanes[way])
			err(1, "packet buffers");
	}
	scheduling_set(arguments.realtime);
	puts("ready");
	fflush(stdout);
	link_run(tuns, lanes, control);
}
