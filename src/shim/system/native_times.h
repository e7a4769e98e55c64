/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * native_times.h - selects the C library's times without _TIME_BITS
 *
 * With -DNATIVE_TIMES (see configure.ac) config.h includes this before any header of the C library. It is a file of its own because
 * configure turns any #undef in config.h into a comment.
 */
#undef _TIME_BITS
