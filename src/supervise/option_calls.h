/* SPDX-License-Identifier: BSD-3-Clause */
/* option_calls.h - handles options and listen() of MPTCP sockets as if they were TCP sockets */
#ifndef SUPERVISE_OPTION_CALLS_H
#define SUPERVISE_OPTION_CALLS_H

#include "supervise/listener.h"

/* Handle setsockopt(), getsockopt() and listen(). */
void options_set(const struct call *call);
void options_get(const struct call *call);
void options_listen(const struct call *call);

#endif
