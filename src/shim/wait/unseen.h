/* SPDX-License-Identifier: BSD-3-Clause */
/* unseen.h - epoll registrations that were made past the hooks, as /proc tells of them */
#ifndef SHIM_UNSEEN_H
#define SHIM_UNSEEN_H

#include "shim/socket/conn.h"

/*
 * unseen_adopt() - take over registrations in @epfd of pending sockets that we know of none of
 * To be called before a wait in @epfd while there are such sockets (conn_unseen). From then on they are
 * masked and restored as those that epoll_ctl() was seen to make. Where /proc isn't there, nothing happens.
 */
void unseen_adopt(int epfd);

#endif
