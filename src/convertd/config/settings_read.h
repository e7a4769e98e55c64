/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settings_read.h - reads settings from the command line and the files that it names
 *
 * A reload reads the same command line and what the files say then.
 */
#ifndef CONVERTD_SETTINGS_READ_H
#define CONVERTD_SETTINGS_READ_H

#include "common/problems.h"

#include <stddef.h>

struct settings;

/*
 * settings_read() - reads the command line and the files that it names
 * @argv: as main() has it; may be given again for a reload
 * Returns settings that are the caller's, for settings_destroy(); or NULL after telling @problems all that is
 * wrong.
 */
struct settings *settings_read(int argc, char *argv[], struct problems *problems);

/*
 * settings_check_text() - tells @problems what is wrong with the text of a configuration file
 * @name: of the file, for the messages
 * @text, @len: its bytes, which are changed
 * The files that it names are not read.
 */
void settings_check_text(const char *name, char *text, size_t len, struct problems *problems);

#endif
