/* SPDX-License-Identifier: BSD-3-Clause */
/* converter_status.h - what a converter's status has of its own: cookies demanded, errors sent, named clients, address families */
#ifndef CONVERTD_CONVERTER_STATUS_H
#define CONVERTD_CONVERTER_STATUS_H

#include "convertd/policy/cookies.h"
#include "observe/monitor.h"

/* For monitor_create(). */
extern const struct status_program converter_status;

/* Reports the state of @demand from now on, and checks it now and then; NULL: no longer. */
void converter_status_watch(struct demand *demand);

#endif
