/* SPDX-License-Identifier: BSD-3-Clause */
/* supervisor_variable.h - how convertize tells the preloaded library by what to start programs that preloading doesn't reach */
#ifndef COMMON_SUPERVISOR_VARIABLE_H
#define COMMON_SUPERVISOR_VARIABLE_H

#define SUPERVISOR_VARIABLE "CONVERT_SUPERVISOR" /* a path of convertize; unset: they are started as they are */

#endif
