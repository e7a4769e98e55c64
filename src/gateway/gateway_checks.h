/* SPDX-License-Identifier: BSD-3-Clause */
/* gateway_checks.h - finds what on this host would keep a gateway from working as its settings say */
#ifndef GATEWAY_GATEWAY_CHECKS_H
#define GATEWAY_GATEWAY_CHECKS_H

#include "gateway/gateway_settings.h"

/* Called with each finding and its remedy. */
typedef void gateway_warn(const char *text);

/*
 * gateway_check_host() - look at sysctls, interfaces, NAT, and routes to converters; changes nothing
 * @note: called with each fact that is no fault, but matters to limits, or to the converter's operator
 */
void gateway_check_host(const struct gateway_settings *settings, gateway_warn *warn, gateway_warn *note);

#endif
