#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# usermode.sh - the first process of Linux in user mode: mounts what virtme-ng mounts elsewhere, runs the script, and ends the machine
#
# Its root is the machine's, read-only. It is given by the kernel's command line, as the kernel puts words with "=" into its environment:
# KERNELLAB_RESULTS, a directory in which it writes; KERNELLAB_SCRIPT; KERNELLAB_BUSYBOX, a busybox.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

mount -t proc none /proc
mount -t sysfs none /sys
mount -t cgroup2 none /sys/fs/cgroup
mountpoint -q /dev || mount -t devtmpfs none /dev
mkdir -p /dev/pts /dev/shm
[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
mount -t devpts none /dev/pts
for memory in /dev/shm /run /var/tmp; do
	mount -t tmpfs -o mode=1777 none $memory
done
# Linux has "hostfs=" since 6.11; what was before takes the path alone.
mount -t hostfs -o "hostfs=$KERNELLAB_RESULTS" none "$KERNELLAB_RESULTS" 2>/dev/null ||
	mount -t hostfs -o "$KERNELLAB_RESULTS" none "$KERNELLAB_RESULTS"
# sudo looks it up.
echo localhost >/proc/sys/kernel/hostname
# Linux lets a process raise its limit of open files to 4096, which systemd changes on other machines. Some tests need more.
prlimit --pid $$ --nofile=1024:1048576
sh "$KERNELLAB_SCRIPT"
"$KERNELLAB_BUSYBOX" poweroff -f
