/* SPDX-License-Identifier: BSD-3-Clause */
/* systemctl.h - questions to systemd, by systemctl(1) as a child process */
#ifndef CONVERTIZE_SYSTEMCTL_H
#define CONVERTIZE_SYSTEMCTL_H

#include <stdbool.h>

/*
 * systemctl() - run it, without a shell
 * @user: the user's own service manager
 * @words: behind its name, ending with NULL; the number of words is limited to a dozen
 * @output: set to what it has printed, to be freed, if the result is 0; NULL: that isn't wanted
 * Returns 0; or another number after saying on standard error why it has failed.
 */
int systemctl(bool user, const char *const words[], char **output);

#endif
