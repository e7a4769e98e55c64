#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# guest.sh FILES_BY DIRECTORY PYTHON GUEST_PY ARGUMENT... - in the other kernel: makes a root of the
# machine's files, and runs guest.py in it
#
# FILES_BY is the file system by which the machine's files are got: 9p of an emulated one, hostfs in user mode. virtme-ng's own root reads
# each page of each program from the other machine again and again. This one keeps what it has read, which halves the time that a program
# takes to start. What the tests write is kept in memory, but for DIRECTORY, which is the other machine's.
set -e
files_by=$1
directory=$2
shift 2

if [ "$files_by" = 9p ]; then
	# The kernel's own program for modules looks in virtme-ng's root, and loads what tests ask for; these are for
	# namespaces, which can't ask.
	for module in veth tun nf_tables nft_reject_inet nft_queue nfnetlink_queue nfnetlink_log tcp_diag inet_diag mptcp_diag tcp_bbr dummy bridge \
		nft_ct nft_log nft_limit nft_fib_inet xt_NFQUEUE iptable_filter act_mirred sch_netem overlay; do
		modprobe -q "$module" || echo "guest.sh: this kernel has no module $module" >&2
	done
fi

place=/run/kernellab
mkdir -p $place
mount -t tmpfs none $place
cd $place
mkdir files written work root
case $files_by in
9p) mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose kernellab files ;;
hostfs) mount -t hostfs -o ro none files ;;
esac
mount -t overlay -o lowerdir=files,upperdir=written,workdir=work none root
cd root
for tree in proc sys dev; do
	mount --rbind /$tree $tree
done
for memory in run var/tmp; do
	mount -t tmpfs -o mode=1777 none $memory
done
mkdir -p "./$directory" lib/modules before
mount --bind "$directory" "./$directory"
ln -s "$(readlink -f "/lib/modules/$(uname -r)")" lib/modules/ 2>/dev/null || true
ip link set lo up
# A route that is "unreachable" gives one ICMP message a second by default. Where time stands still while programs
# run, the second comes sooner.
echo 0 >proc/sys/net/ipv4/route/error_cost

# It must become the root of the mount namespace: processes with another one may not make user namespaces.
exec unshare --mount --propagation private sh -c 'pivot_root . before && cd / && umount -l /before && exec "$@"' sh "$@"
