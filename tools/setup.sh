#!/usr/bin/env bash
# Install the distribution's packages that rdmarun needs, and only those that are missing.
#
#   tools/setup.sh build   what `make` needs to compile
#   tools/setup.sh check   what `make check` needs as well
#   tools/setup.sh test    what tests need as well, and skip without
#   tools/setup.sh lab     what tests of labs need as well, and skip without: Slurm
#   tools/setup.sh peers   other implementations that `make bench-peers` measures beside ours
#   tools/setup.sh vm      what `make rxe-shell` and `make test-rxe` need as well
#   tools/setup.sh arm64   what building the core for arm64 and running its tests needs as well
#   tools/setup.sh siw     what building siw for that VM needs as well
#   tools/setup.sh lists   fetch apt's package lists anew
#
# Quiet when nothing is missing.  Without root and without sudo it names the packages and exits 1.
# Debian 12 and 13, Ubuntu 24.04.
set -euo pipefail

missing=()

# need PACKAGE WHY TEST...: note the package unless the test succeeds.
need() {
	local package=$1 why=$2
	shift 2
	"$@" >/dev/null 2>&1 && return
	printf '  %-20s %s\n' "$package" "$why"
	missing+=("$package")
}

has_header() {
	[ -e "/usr/include/$1" ] || printf '#include <%s>\n' "$1" | cc -fsyntax-only -x c -
}

# sbin is not on every user's PATH.
has_program() {
	PATH=$PATH:/usr/sbin:/sbin command -v "$1"
}

needs_build() {
	need gcc "the C compiler: the core is written in C" has_program gcc
	need libc6-dev "the C library's headers" has_header stdio.h
	need libibverbs-dev "verbs headers <infiniband/verbs.h>, needed to build only" has_header infiniband/verbs.h
	need librdmacm-dev "CM headers <rdma/rdma_cma.h>, needed to build only" has_header rdma/rdma_cma.h
}

needs_test() {
	need ibverbs-utils "ibv_devinfo, a program for rdmarun exec" has_program ibv_devinfo
	need rdmacm-utils "rping and others, two processes of which rdmarun exec connects" has_program rping
	need perftest "ib_write_bw and others, likewise" has_program ib_write_bw
	need libfabric-bin "fi_pingpong, likewise" has_program fi_pingpong
	need ucx-utils "ucx_perftest, likewise" has_program ucx_perftest
	need openmpi-bin "mpirun, which starts programs of MPI over UCX" has_program mpirun
	need libopenmpi-dev "compiles one" has_program mpicc
	need python3-pyverbs "other people's tests, for rdmarun exec" /usr/bin/python3 -c "import pyverbs.device"
	need iproute2 "tells those tests an address" has_program ip
	need tshark "reads captures" has_program tshark
	need openssh-server "a host of a lab" has_program sshd
	need openssh-client "goes there" has_program ssh
	need clang "compiles guests in C" has_program clang
	need lld "links them" has_program wasm-ld
	need wasi-libc "their C library, for programs that were written for one" has_wasi_header stdio.h
	need "$(wasm_runtime)" "what the compiler calls there" has_wasm_runtime
	need libc++-dev-wasm32 "the library of guests in C++" has_cpp_for_wasm
	need wabt "validates modules, beside the decoder of guests" has_program wasm-validate
	need binaryen "gives threads to programs that become guests" has_program wasm-opt
	need rustc "compiles guests in Rust" test -x /usr/bin/rustc
	need libstd-rust-dev-wasm32 "their library" has_rust_for_wasm
	need nodejs "runs the compiler of guests in AssemblyScript" has_program node
	need npm "fetches it" has_program npm
	need systemd "checks the unit in packaging/" has_program systemd-analyze
	# Ubuntu has kubectl as a snap only.
	if [ "$(os_release ID)" = debian ]; then
		need kubernetes-client "checks the manifest in packaging/" has_program kubectl
	fi
	# Ubuntu has Chromium as a snap only, which does not run as root in a container.
	if [ "$(os_release ID)" = debian ]; then
		need chromium "opens the HTML report in a test" has_program chromium
	fi
}

# Apart from the others: installed, they are services of the machine.
needs_lab() {
	need munge "by which Slurm's daemons know each other" has_program munged
	need slurmctld "Slurm, which starts agents of a lab" has_program slurmctld
	need slurmd "its nodes" has_program slurmd
	need slurm-client "its srun" has_program srun
}

needs_peers() {
	need libfabric-bin "fi_pingpong, over tcp and over udp" has_program fi_pingpong
	need ucx-utils "ucx_perftest, over shared memory" has_program ucx_perftest
}

needs_check() {
	need shellcheck "reads the shell scripts" has_program shellcheck
}

needs_vm() {
	need qemu-system-x86 "the virtual machine" has_program qemu-system-x86_64
	need seabios "its firmware" test -e /usr/share/seabios/bios-256k.bin
	need busybox-static "the programs of its first file system" has_static_busybox
	need cpio "packs that file system" has_program cpio
	need kmod "finds which kernel modules need which" has_program depmod
	need iproute2 "makes the network and the RDMA link inside" has_program rdma
	need rdmacm-utils "rping, rdma_server, rdma_client: programs to interoperate with" has_program rdma_server
	need ibverbs-utils "ibv_devinfo, to look around with" has_program ibv_devinfo
	need ibverbs-providers "libibverbs' driver for rxe" has_rxe_provider
	need perftest "ib_write_bw and others, to interoperate with" has_program ib_write_bw
	# Debian 12 ships its kernel modules uncompressed.
	if [ "$(os_release VERSION_CODENAME)" != bookworm ]; then
		need xz-utils "unpacks kernel modules" has_program xz
		need zstd "unpacks kernel modules" has_program zstd
	fi
}

needs_arm64() {
	need gcc-aarch64-linux-gnu "the C compiler for arm64" has_program aarch64-linux-gnu-gcc
	need libc6-dev-arm64-cross "the C library for it" test -e /usr/aarch64-linux-gnu/include/stdio.h
	need qemu-user "runs arm64's programs" has_program qemu-aarch64
}

needs_siw() {
	needs_build
	needs_vm
	need make "compiles the kernel module" has_program make
	need xz-utils "unpacks the kernel's source" has_program xz
}

has_wasi_header() {
	[ -e "/usr/include/wasm32-wasi/$1" ]
}

# The package goes with the version of clang.
wasm_runtime() {
	local version
	version=$(clang -dumpversion 2>/dev/null || apt-cache show clang 2>/dev/null | sed -n 's/^Depends: clang-\([0-9]*\).*/\1/p' | head -1)
	printf 'libclang-rt-%s-dev-wasm32' "${version%%.*}"
}

has_wasm_runtime() {
	compgen -G '/usr/lib/llvm-*/lib/clang/*/lib/wasi/libclang_rt.builtins-wasm32.a'
}

has_cpp_for_wasm() {
	[ -e /usr/lib/wasm32-wasi/libc++.a ]
}

has_rust_for_wasm() {
	compgen -G '/usr/lib/rustlib/wasm32-wasi*'
}

has_static_busybox() {
	has_program busybox && ! ldd "$(command -v busybox)"
}

has_rxe_provider() {
	compgen -G '/usr/lib/*/libibverbs/librxe-*.so'
}

os_release() (
	# shellcheck source=/dev/null
	. /etc/os-release 2>/dev/null || true
	printf '%s' "${!1-}"
)

# as_root prints the words that make a command run as root; fails when there are none.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		printf 'env'
	elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
		printf 'sudo'
	else
		return 1
	fi
}

apt() {
	"$root" DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 "$@"
}

# require_root COMMAND: sets $root, or says which command to ask for and ends.
require_root() {
	root=$(as_root) && return
	{
		echo "This needs root, and there is neither root nor a usable sudo. Ask for:"
		echo
		echo "  $1"
	} >&2
	exit 1
}

install_missing() {
	if ! command -v apt-get >/dev/null; then
		echo "This system has no apt-get. Install what holds the above under your system's names, then run make again." >&2
		exit 1
	fi
	require_root "apt-get install --no-install-recommends ${missing[*]}"
	log=$(mktemp)
	trap 'rm -f "$log"' EXIT
	echo "installing them with apt-get"
	# The package lists of a fresh machine are empty or old: fetch them when the first try fails.
	if ! apt install --no-install-recommends "${missing[@]}" >"$log" 2>&1 &&
		! { apt update && apt install --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
		cat "$log" >&2
		echo "setup: apt-get failed, see above; needed: ${missing[*]}" >&2
		exit 1
	fi
}

# The Go toolchain is not the distribution's affair: 1.25 is newer than what it has.
check_go() {
	if ! command -v go >/dev/null; then
		echo "setup: Go >= 1.25 is needed and there is no 'go' on PATH: https://go.dev/doc/install" >&2
		exit 1
	fi
}

case ${1-} in
build)
	check_go
	check=needs_build
	what="to build rdmarun"
	;;
check)
	check=needs_check
	what="to check the sources"
	;;
test)
	check=needs_test
	what="for tests"
	;;
lab)
	check=needs_lab
	what="to test labs"
	;;
peers)
	check=needs_peers
	what="to measure beside other implementations"
	;;
vm)
	check=needs_vm
	what="to run a virtual machine with an RDMA kernel"
	;;
arm64)
	check=needs_arm64
	what="to run the core's tests on arm64"
	;;
siw)
	check=needs_siw
	what="to build iWARP for that machine"
	;;
lists)
	require_root "apt-get update"
	echo "fetching apt's package lists"
	apt update
	exit
	;;
*)
	sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2
	exit 64
	;;
esac

list=$(mktemp)
trap 'rm -f "$list"' EXIT
"$check" >"$list"
if [ "$1" = vm ] && {
	[ -z "$(apt-cache show linux-image-amd64 linux-image-generic 2>/dev/null)" ] ||
		[ -z "$(find /var/lib/apt/lists -maxdepth 0 -mtime -7)" ]
}; then
	# A fresh machine's lists are empty, or as old as its image, and the VM's kernel is found in them.  An old one may be
	# broken: under rdma_rxe of Debian's 6.1.172 the core's test of shared receive queues hangs, and cannot even be killed.
	"$0" lists || echo "setup: the VM's kernel is that of apt's old lists" >&2
fi
[ ${#missing[@]} = 0 ] && exit 0
echo "Needed $what, and missing:"
cat "$list"
rm -f "$list"
install_missing
missing=()
"$check"
if [ ${#missing[@]} != 0 ]; then
	echo "setup: installed, yet the above is still not found" >&2
	exit 1
fi
