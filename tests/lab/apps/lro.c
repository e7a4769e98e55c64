/* SPDX-License-Identifier: BSD-3-Clause */
/* lro.c - a library to preload, under which the network device "lte" has LRO, as only devices with hardware can */
#include <dlfcn.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdarg.h>
#include <string.h>

int ioctl(int fd, unsigned long request, ...)
{
	int (*next)(int, unsigned long, ...);
	struct ethtool_value *value;
	struct ifreq *device;
	va_list args;

	va_start(args, request);
	device = va_arg(args, struct ifreq *);
	va_end(args);
	*(void **)&next = dlsym(RTLD_NEXT, "ioctl");
	value = request == SIOCETHTOOL ? (void *)device->ifr_data : NULL;
	if (!value || value->cmd != ETHTOOL_GFLAGS || strcmp(device->ifr_name, "lte") != 0)
		return next(fd, request, device);
	value->data = ETH_FLAG_LRO;
	return 0;
}
