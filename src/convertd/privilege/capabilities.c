/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * capabilities.c - the capabilities of this process: capabilities(7)
 *
 * It makes the system calls itself, so that a process can drop all capabilities even if convertd was built without
 * libcap-ng.
 */
#include "config.h"

#include "convertd/privilege/capabilities.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORDS _LINUX_CAPABILITY_U32S_3

static int get(struct __user_cap_data_struct data[static WORDS])
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capget, &header, data) < 0 ? -errno : 0;
}

bool capabilities_has(uint64_t set)
{
	struct __user_cap_data_struct data[WORDS] = { 0 };

	return get(data) == 0 &&
	       (((uint64_t)data[1].effective << 32 | data[0].effective) & set) != 0;
}

int capabilities_keep(uint64_t set)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[WORDS] = { 0 };
	int error = get(data);

	if (error)
		return error;
	/* Until it fails behind the last capability: a kernel newer than the headers may have more of them. */
	for (unsigned long i = 0; prctl(PR_CAPBSET_DROP, i, 0, 0, 0) == 0; i++)
		;
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	for (int i = 0; i < WORDS; i++) {
		data[i].permitted &= (uint32_t)(set >> (32 * i));
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}
