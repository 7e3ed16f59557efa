# Sourced by rxe-vm, for its $here and $cache: finds or makes the image that QEMU boots.
# shellcheck shell=bash
: "${here:?}" "${cache:?}"

# image_directory prints the folder that holds vmlinuz and initrd.gz, after making it where needed.
# The folder's name says what it was made from, so that it is never stale.
image_directory() {
	local packages version directory
	packages=$(kernel_packages) || return
	version=$(apt-cache policy "${packages%% *}" | awk '/Candidate:/ {print $2}')
	directory=$cache/image-$(printf '%s' "$packages $version" |
		cat - "$here/init" "$here/modules" "$here/make-image" | sha256sum | cut -c1-16)
	mkdir -p "$cache" || return
	# Two runs at once make it once; the lock goes with the descriptor.
	(
		flock 9
		# The packages are words of one string.
		# shellcheck disable=SC2086
		[ -e "$directory/initrd.gz" ] || "$here/make-image" "$directory" $packages
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
		say "no kernel package in apt's lists; \"tools/setup.sh lists\" fetches them (root or sudo)"
		return 1
	fi
	found=$image
	release=${image#linux-image-}
	for name in "linux-modules-$release" "linux-modules-extra-$release"; do
		[ -n "$(apt-cache show "$name" 2>/dev/null)" ] && found+=" $name"
	done
	printf '%s' "$found"
}

# provide_siw JOB puts the driver of siw into the job's folder, after making it where needed: an empty file
# where the kernel of the image has it already.
provide_siw() {
	local packages version module
	if grep -qx siw.ko "$image/modules"; then
		: >"$1/siw.ko"
		return
	fi
	packages=$(kernel_packages) || return
	packages=${packages%% *}
	version=$(apt-cache policy "$packages" | awk '/Candidate:/ {print $2}')
	module=$cache/siw-$(printf '%s' "$packages $version" | cat - "$here/make-siw" | sha256sum | cut -c1-16).ko
	if ! [ -e "$module" ]; then
		"$here/../setup.sh" siw >&2 || return
		(
			flock 9
			[ -e "$module" ] || "$here/make-siw" "$module" "$packages"
		) 9>"$cache/lock" || return
	fi
	cp "$module" "$1/siw.ko"
}
