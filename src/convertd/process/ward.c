/* SPDX-License-Identifier: BSD-3-Clause */
/* ward.c - the serving process's (the ward's) connection to the main process, which has the rights; theory in warden.c */
#include "config.h"

#include "convertd/process/ward.h"

#include "convertd/base/fdpass.h"
#include "convertd/process/notify.h"
#include "convertd/rights/rights.h"
#include "convertd/rights/warden_message.h"

#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

bool ward_has_warden(const struct ward *ward)
{
	return ward->orders >= 0;
}

static void disconnect(struct ward *ward)
{
	if (ward->order)
		event_free(ward->order);
	ward->order = NULL;
	if (ward->orders >= 0)
		close(ward->orders);
	if (ward->notices >= 0)
		close(ward->notices);
	if (ward->calls >= 0)
		close(ward->calls);
	rights_init(-1);
	ward->orders = ward->notices = ward->calls = -1;
}

static void on_order(evutil_socket_t fd, short what, void *arg)
{
	struct ward *ward = arg;
	struct warden_order order;
	ssize_t len = recv(fd, &order, sizeof(order), MSG_DONTWAIT);

	(void)what;
	if (len == (ssize_t)sizeof(order))
		ward->on_signal((int)order.signum, ward->arg);
	else if (len == 0 && ward->left)
		/* The copy of the main process couldn't be made, or was killed: this process goes on without rights. */
		disconnect(ward);
	else if (len == 0)
		/* The main process is gone, so PR_SET_PDEATHSIG is about to kill this one anyway. */
		_exit(EXIT_FAILURE);
}

bool ward_listen(struct ward *ward, struct event_base *base,
		 void (*on_signal)(int signum, void *arg), void *arg)
{
	ward->on_signal = on_signal;
	ward->arg = arg;
	ward->order = event_new(base, ward->orders, EV_READ | EV_PERSIST, on_order, ward);
	return ward->order && event_add(ward->order, NULL) == 0;
}

static void on_direct_signal(evutil_socket_t signum, short what, void *arg)
{
	struct ward *ward = arg;

	(void)what;
	ward->on_signal((int)signum, ward->arg);
}

void ward_leave(struct ward *ward)
{
	static const int signals[] = { SIGTERM, SIGINT };
	struct warden_order order = { .signum = WARDEN_LEAVE };

	if (!ward_has_warden(ward) || ward->left)
		return;
	ward->left = true;
	prctl(PR_SET_PDEATHSIG, 0);
	for (size_t i = 0; ward->order && i < sizeof(signals) / sizeof(signals[0]); i++) {
		ward->direct[i] = evsignal_new(event_get_base(ward->order), signals[i],
					       on_direct_signal, ward);
		if (ward->direct[i])
			evsignal_add(ward->direct[i], NULL);
	}
	/* The service manager doesn't listen to any other process than the main one. */
	notify_stop();
	fdpass_send(ward->orders, &order, sizeof(order), -1);
}

void ward_fini(struct ward *ward)
{
	disconnect(ward);
	for (size_t i = 0; i < sizeof(ward->direct) / sizeof(ward->direct[0]); i++) {
		if (ward->direct[i])
			event_free(ward->direct[i]);
		ward->direct[i] = NULL;
	}
}
