/* SPDX-License-Identifier: BSD-3-Clause */
/* option_calls.h - what a program wants of a socket that is MPTCP's, and that TCP alone has: options, and listening */
#ifndef SUPERVISE_OPTION_CALLS_H
#define SUPERVISE_OPTION_CALLS_H

#include "supervise/listener.h"

/* Each deals with a call of the kind that it is named after. */
void options_set(const struct call *call);
void options_get(const struct call *call);
void options_listen(const struct call *call);

#endif
