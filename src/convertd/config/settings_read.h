/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settings_read.h - reads settings from the command line and the files that it names
 *
 * A reload reads the same command line, and the files as they are then.
 */
#ifndef CONVERTD_SETTINGS_READ_H
#define CONVERTD_SETTINGS_READ_H

#include "common/problems.h"

#include <stddef.h>

struct settings;

/*
 * settings_read() - read the command line and the files that it names
 * @argv: main()'s; may be given again for a reload
 * Returns settings that the caller owns, for settings_destroy(); or NULL after adding all errors to @problems.
 */
struct settings *settings_read(int argc, char *argv[], struct problems *problems);

/*
 * settings_check_text() - check the text of a configuration file, and add its errors to @problems
 * @name: of the file, for the messages
 * @text, @len: its bytes, which are changed
 * It doesn't read files that the text names.
 */
void settings_check_text(const char *name, char *text, size_t len, struct problems *problems);

#endif
