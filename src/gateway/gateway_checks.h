/* SPDX-License-Identifier: BSD-3-Clause */
/* gateway_checks.h - finds what on this host would keep a gateway from working as its settings say */
#ifndef GATEWAY_GATEWAY_CHECKS_H
#define GATEWAY_GATEWAY_CHECKS_H

#include "gateway/gateway_settings.h"

/* Called with each finding and its remedy. */
typedef void gateway_warn(const char *text);

/* gateway_check_host() - look at sysctls, interfaces, and routes to converters; changes nothing */
void gateway_check_host(const struct gateway_settings *settings, gateway_warn *warn);

#endif
