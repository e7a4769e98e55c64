/* SPDX-License-Identifier: BSD-3-Clause */
/* preload_nothing.c - a library that does nothing: what any preload costs at the least */
extern int preload_nothing;
int preload_nothing;
