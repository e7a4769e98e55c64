/* SPDX-License-Identifier: BSD-3-Clause */
/* unseen_watches.h - epoll registrations that were made past the hooks, as /proc tells of them */
#ifndef SHIM_UNSEEN_WATCHES_H
#define SHIM_UNSEEN_WATCHES_H

#include "shim/socket/conn.h"

/*
 * unseen_watches_adopt() - adopt registrations in @epfd of pending sockets that have no known registration
 * To be called before a wait in @epfd while there are such sockets (conn_unseen). From then on the registrations are
 * masked and restored as those that the hook of epoll_ctl() has seen. Without /proc nothing happens. errno stays as it was.
 */
void unseen_watches_adopt(int epfd);

#endif
