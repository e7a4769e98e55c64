/* SPDX-License-Identifier: BSD-3-Clause */
/* unit_name.h - names of systemd's units (systemd.unit(5)); without I/O */
#ifndef CONVERTIZE_UNIT_NAME_H
#define CONVERTIZE_UNIT_NAME_H

#include <stdbool.h>

#define UNIT_NAME_MAX 256 /* with the NUL: systemd's own limit */
#define UNIT_SERVICE ".service"

/*
 * unit_name_complete() - the full name of the service that a user means: "ssh" is ssh.service
 * Returns NULL, or what is wrong, in words that complete "X …".
 */
const char *unit_name_complete(char out[static UNIT_NAME_MAX], const char *word);

/* Is it a template's, such as "container@.service"? */
bool unit_name_is_template(const char *name);

/*
 * unit_name_instance() - an instance of a template, which systemd can be asked about; any other name as it is
 * unit_name_template() turns the name that systemd gives the instance into its template's.
 */
void unit_name_instance(char out[static UNIT_NAME_MAX], const char *name);
void unit_name_template(char name[static UNIT_NAME_MAX]);

#endif
