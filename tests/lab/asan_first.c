/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * asan_first.c - starts AddressSanitizer before a program's libraries
 *
 * Where its run-time library is preloaded, it starts with the first malloc(). p11-kit's constructor
 * (in curl, wget and whatever else has GnuTLS) calls newlocale(), whose malloc() comes with glibc's
 * locale lock held; ASan then looks up a symbol that isn't there, dlerror() translates its message,
 * which takes and releases the same lock, and the program's setlocale() waits for ever. Seen with
 * GCC 12 and glibc 2.36 and no library of ours. This library is linked with -z initfirst.
 */
#include <stdlib.h>

__attribute__((constructor)) static void start(void)
{
	void *volatile memory = malloc(1);

	free(memory);
}
