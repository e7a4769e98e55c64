/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_events.h - an event loop, a poller and a clock that the test moves, in place of libevent, poller.c and clock.c */
#ifndef TESTS_UNIT_FAKE_EVENTS_H
#define TESTS_UNIT_FAKE_EVENTS_H

#include <stdint.h>

/* Moves the clock, and calls what falls due on the way, in order. */
void fake_clock_advance(uint64_t ms);

/* Moves the clock, and calls nothing: the loop isn't scheduled meanwhile. */
void fake_clock_stall(uint64_t ms);

/* Calls all events that event_active() has made active. */
void fake_events_run(void);

/* Tells the poller's owner of the socket about events of epoll. */
void fake_poller_tell(int fd, uint32_t events);

/* How many sockets are registered with the poller, and how many have been until now. */
unsigned fake_poller_count(void);
unsigned fake_poller_adds(void);

#endif
