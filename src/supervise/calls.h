/* SPDX-License-Identifier: BSD-3-Clause */
/* calls.h - handles each call that the filter has stopped */
#ifndef SUPERVISE_CALLS_H
#define SUPERVISE_CALLS_H

#include "supervise/listener.h"

/* Answers @call, lets the kernel run it, or begins a connection that answers it. */
void calls_handle(struct call *call);

#endif
