/* SPDX-License-Identifier: BSD-3-Clause */
/* sysctls.h - what convertd wants of the kernel's settings */
#ifndef CONVERTD_SYSCTLS_H
#define CONVERTD_SYSCTLS_H

#include <stdbool.h>

enum sysctl_rule {
	SYSCTL_IS,    /* this value */
	SYSCTL_LEAST, /* this or more */
	SYSCTL_MOST,  /* this or less */
	SYSCTL_BITS,  /* these bits at least */
};

struct sysctl_wish {
	const char *name; /* as sysctl(8) has it */
	enum sysctl_rule rule;
	int value;
	const char *otherwise; /* what happens if it isn't so */
};

/* The list ends with one without a name; contrib/sysctl.d/50-convertd.conf has the same ones. */
extern const struct sysctl_wish sysctl_wishes[];

/* Is it fulfilled by this value? */
bool sysctl_wish_met(const struct sysctl_wish *wish, int value);

/* What to set it to, where it has this value and shouldn't. */
int sysctl_wish_remedy(const struct sysctl_wish *wish, int value);

#endif
