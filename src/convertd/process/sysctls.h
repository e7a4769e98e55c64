/* SPDX-License-Identifier: BSD-3-Clause */
/* sysctls.h - the sysctls that convertd wants, with the consequences of other values */
#ifndef CONVERTD_SYSCTLS_H
#define CONVERTD_SYSCTLS_H

#include <stdbool.h>

enum sysctl_rule {
	SYSCTL_IS,    /* it should be this value */
	SYSCTL_LEAST, /* it should be this value or more */
	SYSCTL_MOST,  /* it should be this value or less */
	SYSCTL_BITS,  /* it should have these bits, and may have others */
};

struct sysctl_wish {
	const char *name; /* as sysctl(8) writes it */
	enum sysctl_rule rule;
	int value;
	const char *otherwise; /* the consequence of another value, for the log */
};

/* The list, whose last entry has no name. contrib/sysctl.d/50-convertd.conf has the same sysctls. */
extern const struct sysctl_wish sysctl_wishes[];

/* Tells whether @value is as wished. */
bool sysctl_wish_met(const struct sysctl_wish *wish, int value);

/* Returns the value to set the sysctl to, whose present one, @value, isn't as wished. */
int sysctl_wish_remedy(const struct sysctl_wish *wish, int value);

#endif
