# Sourced by rxe-vm: makes what QEMU boots, a kernel of the distribution and a small first file system,
# in the user's cache folder.  Nothing is installed.

# image_directory prints the folder that holds vmlinuz and initrd.gz, after making it where needed.
# The folder's name says what it was made from, so that it is never stale.
image_directory() {
	local packages version directory
	packages=$(kernel_packages) || return
	version=$(apt-cache policy ${packages%% *} | awk '/Candidate:/ {print $2}')
	directory=$cache/image-$(printf '%s' "$packages $version" | cat - "$here/init" "$here/modules" "$here/image.sh" | sha256sum | cut -c1-16)
	mkdir -p "$cache"
	(
		flock 9
		[ -e "$directory/initrd.gz" ] || make_image "$directory" $packages
	) 9>"$cache/lock" || return
	printf '%s' "$directory"
}

# kernel_packages prints the packages of the distribution's newest kernel: the one with the kernel
# first.  (Not the "cloud" flavour, which has no RDMA.)  Debian has the modules in the same package,
# Ubuntu in two of their own.
kernel_packages() {
	local meta image release name found
	for meta in linux-image-amd64 linux-image-generic; do
		image=$(apt-cache depends "$meta" 2>/dev/null | awk '/Depends: linux-image-[0-9]/ {print $2; exit}')
		[ -n "$image" ] && break
	done
	if [ -z "$image" ]; then
		say "no kernel package in apt's lists; run \"make rxe-setup\" (as root or with sudo), which fetches them"
		return 1
	fi
	found=$image
	release=${image#linux-image-}
	for name in "linux-modules-$release" "linux-modules-extra-$release"; do
		[ -n "$(apt-cache show "$name" 2>/dev/null)" ] && found+=" $name"
	done
	printf '%s' "$found"
}

# make_image DIRECTORY PACKAGE... : the folder appears at the end, whole.
make_image() {
	local directory=$1 work package
	shift
	say "making the VM's image from $1 (once; kept in $cache)"
	work=$(mktemp -d "$cache/making.XXXXXX")
	(
		set -e
		trap 'rm -rf "$work"' EXIT
		cd "$work"
		download "$@"
		for package in *.deb; do
			dpkg -x "$package" root
		done
		release=$(cd root/boot && echo vmlinuz-*)
		release=${release#vmlinuz-}
		modules_into_initrd "$release"
		mkdir -p initrd/bin result
		cp "$(PATH=$PATH:/usr/sbin:/sbin command -v busybox)" initrd/bin/busybox
		install -m 755 "$here/init" initrd/init
		(cd initrd && find . | cpio --quiet -o -H newc -R 0:0 | gzip -1) >result/initrd.gz
		cp "root/boot/vmlinuz-$release" result/vmlinuz
		printf '%s\n' "$release" >result/release
		# Images of earlier kernels and earlier scripts are of no more use.
		rm -rf "$cache"/image-*
		mv result "$directory"
	)
}

download() {
	apt-get -qq download "$@" 2>download.log && return
	cat download.log >&2
	say "the kernel could not be downloaded; \"make rxe-setup\" refreshes apt's lists"
	return 1
}

# modules_into_initrd RELEASE: the modules, uncompressed, and the order to load them in.
modules_into_initrd() {
	local release=$1 name optional path file
	PATH=$PATH:/usr/sbin:/sbin
	[ -d root/lib/modules ] || mv root/usr/lib root/lib
	depmod -b root "$release"
	mkdir -p initrd/modules
	sed 's/#.*//' "$here/modules" | while read -r name; do
		[ -n "$name" ] || continue
		optional=${name##*[!?]}
		name=${name%\?}
		if ! modprobe -d root -S "$release" --show-depends "$name" 2>missing.log; then
			[ -n "$optional" ] && continue
			cat missing.log >&2
			say "kernel $release has no module $name"
			return 1
		fi
	done | awk '$1 == "insmod" && !seen[$2]++ {print $2}' >paths
	while read -r path; do
		file=$(basename "$path")
		case $file in
		*.xz) xz -dc "$path" >"initrd/modules/${file%.xz}" ;;
		*.zst) zstd -qdc "$path" >"initrd/modules/${file%.zst}" ;;
		*) cp "$path" initrd/modules/ ;;
		esac
		printf '%s\n' "${file%.[xz]*}"
	done <paths | sed 's/\.ko\..*/.ko/' >initrd/modules/order
}
