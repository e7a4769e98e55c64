/* SPDX-License-Identifier: BSD-3-Clause */
/* unit_search.h - the files of a unit, found as systemd finds them, where it can't be asked */
#ifndef CONVERTIZE_UNIT_SEARCH_H
#define CONVERTIZE_UNIT_SEARCH_H

/*
 * unit_search() - the properties of a service of the system, from its file and its drop-ins
 * Beside those of unit_file_print() there are Id, LoadState ("loaded", "masked" or "not-found") and FragmentPath.
 * Returns a text to be freed, or NULL without memory.
 */
char *unit_search(const char *name);

#endif
