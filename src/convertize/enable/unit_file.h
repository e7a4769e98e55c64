/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit_file.h - unit files, read as systemd reads them, as far as convertize has to know; without I/O
 *
 * For a system in a directory, where no service manager can be asked. What comes out has the form of "systemctl show".
 */
#ifndef CONVERTIZE_UNIT_FILE_H
#define CONVERTIZE_UNIT_FILE_H

#include <stdbool.h>
#include <stdio.h>

/* The assignments in the sections [Service] of a unit's file and its drop-ins, in their order. Zero it to begin. */
struct unit_file {
	struct unit_assignment {
		char *name, *value;
	} *list;
	size_t count, room;
};

/* unit_file_parse() - add what a file's text says; the text is written to. Returns false without memory. */
bool unit_file_parse(struct unit_file *file, char *text);

/*
 * unit_file_print() - print it as properties
 * What would need a service manager is left out: groups of system calls, and the meaning of specifiers.
 */
void unit_file_print(const struct unit_file *file, FILE *out);

void unit_file_fini(struct unit_file *file);

#endif
