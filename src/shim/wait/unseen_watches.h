/* SPDX-License-Identifier: BSD-3-Clause */
/* unseen_watches.h - finds epoll registrations that were made past the hooks, from /proc */
#ifndef SHIM_UNSEEN_WATCHES_H
#define SHIM_UNSEEN_WATCHES_H

#include "shim/socket/conn.h"

/*
 * unseen_watches_adopt() - adopt registrations in @epfd of pending sockets that have no known registration
 * Call it before a wait in @epfd while there are such sockets (conn_unseen). From then on we mask and restore these registrations like
 * those that the hook of epoll_ctl() has seen. Without /proc it does nothing. errno stays as it was.
 */
void unseen_watches_adopt(int epfd);

#endif
