#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# abuild_stubs.sh - runs the functions of an APKBUILD, with stand-ins for those of abuild, Alpine's program for building packages
#
# abuild_stubs.sh PLACE    where APKBUILD is in PLACE, and the sources in PLACE/src
#
# Written from abuild's manual. Packages are left in PLACE/pkg/NAME, what is said of them in PLACE/info/NAME. CBUILD and CHOST come from
# the environment, as all that configure takes from there.
# shellcheck disable=SC2154 # what APKBUILD sets
set -eu

startdir=$1
srcdir=$startdir/src
pkgdir=
subpkgdir=

# Moves what the main package has at these paths into the package that is made.
amove() {
	for moved; do
		if [ ! -e "$pkgdir/$moved" ] && [ ! -L "$pkgdir/$moved" ]; then
			echo "amove: there is no $moved" >&2
			return 1
		fi
		mkdir -p "$subpkgdir/$(dirname "$moved")"
		mv "$pkgdir/$moved" "$subpkgdir/$moved"
	done
}

# The functions that an APKBUILD doesn't need to have: one for each package that is called …-doc, …-dev, …-openrc.
doc() {
	pkgdesc="$pkgdesc (documentation)"
	for part in doc man licenses; do
		amove usr/share/$part
	done
	find "$subpkgdir/usr/share/man" -type f -exec gzip -n -9 {} +
}

dev() {
	pkgdesc="$pkgdesc (development files)"
	amove usr/include usr/lib/pkgconfig
	for link in usr/lib/*.so; do
		[ ! -L "$link" ] || amove "$link"
	done
	[ -z "$(find "$pkgdir" -name '*.[cho]')" ]
}

openrc() {
	pkgdesc="$pkgdesc (OpenRC init scripts)"
	install_if="openrc ${subpkgname%-openrc}=$pkgver-r$pkgrel"
	amove etc/init.d etc/conf.d
}

# Writes down what is said of a package: write_info NAME ARCHITECTURE
write_info() {
	printf '%s=%s\n' arch "$2" version "$pkgver-r$pkgrel" description "$pkgdesc" license "$license" url "$url" \
		depends "${depends-}" install_if "${install_if-}" >"$startdir/info/$1"
}

# shellcheck source=/dev/null # the file that is tested
. "$startdir/APKBUILD"

builddir=$srcdir/$pkgname-$pkgver
mkdir -p "$startdir/info"
for part in build check package; do
	echo "== $part"
	cd "$builddir"
	pkgdir=$startdir/pkg/$pkgname
	$part
done
find "$pkgdir" -name '*.la' -delete
for named in $subpackages; do
	subpkgname=${named%%:*}
	rest=${named#"$subpkgname"}
	rest=${rest#:}
	split=${rest%%:*}
	arch=${rest#"$split"}
	arch=${arch#:}
	echo "== $subpkgname"
	cd "$pkgdir"
	subpkgdir=$startdir/pkg/$subpkgname
	mkdir -p "$subpkgdir"
	# each in a shell of its own, as what it sets is said of its package alone
	(
		install_if=
		${split:-${subpkgname##*-}}
		case $subpkgname in
		*-doc | *-openrc | *-completion) arch=noarch ;;
		esac
		write_info "$subpkgname" "$arch"
	)
done
write_info "$pkgname" ""
find "$pkgdir" -type d -empty -delete
