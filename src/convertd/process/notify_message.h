/* SPDX-License-Identifier: BSD-3-Clause */
/* notify_message.h - what convertd has to say to a service manager: assignments of sd_notify(3) (no I/O) */
#ifndef CONVERTD_NOTIFY_MESSAGE_H
#define CONVERTD_NOTIFY_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of a message; systemd passes over longer ones (PIPE_BUF). */
#define NOTIFY_MAX 4096

/* The names by which the service manager keeps descriptors for the next process (FDNAME=): */
#define NOTIFY_KEPT_NAME "convertd-listen"       /* listening sockets that convertd has made itself */
#define NOTIFY_LIFELINE_NAME "convertd-lifeline" /* one end of the lifeline: handover.c */
#define NOTIFY_RULES_NAME "convertd-rules"       /* the owner of the rules for SYNs: withholding_rules_fd() */

/*
 * notify_message_is_right() - is it a message that convertd sends?
 * Each line of it must be one that notify.c sends: whoever has taken over the serving process may not name
 * another main process, or have descriptors kept under names of others (sd_notify(3)).
 */
bool notify_message_is_right(const char *text, size_t len);

#endif
