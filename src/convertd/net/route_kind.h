/* SPDX-License-Identifier: BSD-3-Clause */
/* route_kind.h - where an address leads, as seen from this host */
#ifndef CONVERTD_ROUTE_KIND_H
#define CONVERTD_ROUTE_KIND_H

enum route_kind {
	ROUTE_ELSEWHERE, /* to another host, or nowhere, as connect() will find out */
	ROUTE_OWN,       /* to this host */
	ROUTE_BROADCAST, /* to all hosts of a network of ours, or to a group */
	ROUTE_UNKNOWN,   /* the kernel couldn't say */
};

#endif
