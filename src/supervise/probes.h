/* SPDX-License-Identifier: BSD-3-Clause */
/* probes.h - keepalive, which asks a silent converter's host whether it is there */
#ifndef SUPERVISE_PROBES_H
#define SUPERVISE_PROBES_H

#include "supervise/connection.h"

/* Sends probes from now on, with the program's settings of keepalive set aside. */
void probes_start(struct connection *connection);

/* Gives the program its settings back, if probes are sent. */
void probes_end(struct connection *connection);

#endif
