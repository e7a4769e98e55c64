/* SPDX-License-Identifier: BSD-3-Clause */
/* admission.h - is a valid request granted? */
#ifndef CONVERTD_ADMISSION_H
#define CONVERTD_ADMISSION_H

#include "common/sockaddr.h"
#include "convertd/request.h"
#include "convertd/route.h"
#include "convertd/settings.h"

/*
 * admission_check() - may this client have what it asks for?
 * @message: the request
 * @decision: what request_decide() made of it, valid; left alone if it is granted, else changed to
 *            the refusal
 */
void admission_check(const struct settings *settings, struct route *route,
		     const struct request_features *features, const union sockaddr_ip *client,
		     const uint8_t *message, struct request_decision *decision);

#endif
