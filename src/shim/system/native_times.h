/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * native_times.h - the times that the C library has without _TIME_BITS
 *
 * config.h includes this for what is compiled with -DNATIVE_TIMES (see configure.ac), before any header of the C library.
 * It is a file of its own since configure makes a comment of any #undef in config.h.
 */
#undef _TIME_BITS
