/* SPDX-License-Identifier: BSD-3-Clause */
/* unit_judge.h - would a unit's connections be converted if the library were preloaded? What its sandbox says; without I/O */
#ifndef CONVERTIZE_UNIT_JUDGE_H
#define CONVERTIZE_UNIT_JUDGE_H

#include "convertize/enable/unit_properties.h"

#include <stdbool.h>
#include <stddef.h>

#define UNIT_FINDING_MAX 768
#define UNIT_FINDINGS_MAX 16

enum unit_level {
	UNIT_DOUBTFUL, /* it may work; said as a warning */
	UNIT_USELESS,  /* nothing would be converted: refused, unless the user insists */
	UNIT_HARMFUL,  /* the service would no longer work: refused in any case */
};

/* What stands in the way, as clauses that follow the unit's name and a colon. */
struct unit_findings {
	struct {
		enum unit_level level;
		char text[UNIT_FINDING_MAX];
	} list[UNIT_FINDINGS_MAX];
	size_t count;
};

void unit_findings_add(struct unit_findings *findings, enum unit_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The worst level of all; UNIT_DOUBTFUL if there are none. */
enum unit_level unit_findings_worst(const struct unit_findings *findings);

/*
 * unit_judge_sandbox() - what the unit's restrictions mean for the library
 * @library: the path of its file
 */
void unit_judge_sandbox(struct unit_findings *findings, const struct unit_properties *unit, const char *library);

/* The properties that are looked at, for "systemctl show --property="; unit_programs.c needs some more. */
#define UNIT_JUDGE_PROPERTIES \
	"PrivateNetwork,RestrictAddressFamilies,SystemCallFilter,SystemCallErrorNumber,IPAddressDeny,IPAddressAllow," \
	"RootImage,InaccessiblePaths,TemporaryFileSystem,NoExecPaths,ExecPaths,ProtectHome,PrivateTmp,UnsetEnvironment"

#endif
