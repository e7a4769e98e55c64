/* SPDX-License-Identifier: BSD-3-Clause */
/* calls.h - what becomes of each call that the filter has stopped */
#ifndef SUPERVISE_CALLS_H
#define SUPERVISE_CALLS_H

#include "supervise/listener.h"

/* Answers @call, lets it go, or begins a connection that answers it. */
void calls_handle(struct call *call);

#endif
