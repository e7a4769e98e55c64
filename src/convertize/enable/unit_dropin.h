/* SPDX-License-Identifier: BSD-3-Clause */
/* unit_dropin.h - the files that convertize makes: for a unit, for its cookie, for a session; without I/O */
#ifndef CONVERTIZE_UNIT_DROPIN_H
#define CONVERTIZE_UNIT_DROPIN_H

#include <stdbool.h>

/*
 * The first words of each file that convertize makes, by which it knows them again: it replaces and removes no others.
 * The name of the drop-in is among the last that systemd reads, as a variable has the value that it gets last.
 */
#define UNIT_MARKER "# Made by convertize"
#define UNIT_DROPIN_NAME "zz-convertize.conf"
#define UNIT_COOKIE_NAME "zz-convertize.cookie"

/* Looks a variable up, as getenv(3) does. */
typedef const char *unit_lookup(const char *name);

/*
 * unit_dropin_text() - the drop-in that has a unit converted
 * @unit: its name. @preload: the value of LD_PRELOAD.
 * @cookie_path: of the file of unit_cookie_text(); NULL: there is none
 * Returns a text to be freed; NULL without memory, or if a value can't stand in a unit file.
 */
char *unit_dropin_text(const char *unit, const char *preload, const char *cookie_path, unit_lookup *lookup);

/*
 * unit_cookie_text() - the file with the cookie, which is kept out of the drop-in, since everybody can see what is in there
 * Returns a text to be freed, or NULL as above.
 */
char *unit_cookie_text(const char *unit, const char *cookie);

/* Can a value stand in a file of lines? It has no control characters. */
bool unit_value_is_plain(const char *value);

/*
 * unit_dropin_variable() - find a variable in the text of a drop-in that unit_dropin_text() has made
 * Returns the value, to be freed; NULL if it isn't there.
 */
char *unit_dropin_variable(const char *text, const char *name);

/* Is it the text of a file that convertize has made? */
bool unit_text_is_ours(const char *text);

#endif
