/* SPDX-License-Identifier: BSD-3-Clause */
/* services.h - converts systemd's services by default: "convertize enable", "disable" and "list" */
#ifndef CONVERTIZE_SERVICES_H
#define CONVERTIZE_SERVICES_H

#include "convertize/options/command_line.h"

/* Each returns the exit status: 0, STATUS_FAILED or STATUS_USAGE. */
int services_enable(struct options *options);
int services_disable(const struct options *options);
int services_list(const struct options *options);

#endif
