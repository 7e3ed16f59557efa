package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Files are what a process may use of the file system: files, and folders with all below them.  Those that do not exist
// are left out.
type Files struct {
	Read    []string
	Write   []string // and read, and make and remove
	Own     []Own    // as Write
	Link    []string // and write, and make symbolic links
	Execute []string // and read
}

// Own is a folder of this user.  Its Path begins in the folder Above, which may belong to another user.  So a folder
// that a symbolic link on Path leads to is left out.
type Own struct{ Above, Path string }

// System are the files that every process of rdmarun needs. They are libraries, some of them opened later (providers
// of libibverbs, name services), names of hosts, devices, and the kernel's facts.
//
// A process in a domain of landlock cannot read what /proc has of processes outside, such as their environment. With
// CAP_PERFMON it could (Linux 6.14 and later), and restrict drops that.
func System() Files {
	return Files{
		Read: []string{
			"/proc", "/sys", "/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf",
			"/etc/services", "/etc/protocols", "/etc/localtime", "/etc/ld.so.cache", "/etc/libibverbs.d", "/etc/rdma",
			"/dev/urandom", "/dev/random", "/dev/zero",
		},
		Write:   []string{"/dev/null", "/dev/infiniband"},
		Execute: []string{"/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/proc/self/exe"},
	}
}

// With are the files of both.
func (f Files) With(more Files) Files {
	return Files{
		Read:    append(append([]string{}, f.Read...), more.Read...),
		Write:   append(append([]string{}, f.Write...), more.Write...),
		Own:     append(append([]Own{}, f.Own...), more.Own...),
		Link:    append(append([]string{}, f.Link...), more.Link...),
		Execute: append(append([]string{}, f.Execute...), more.Execute...),
	}
}

// landlockNeeded is the version of Linux 5.19. landlockTruncates restricts truncation, too (Linux 6.2; before, the
// filter of system calls alone does). landlockSignals restricts signals to other processes (Linux 6.12).
const landlockNeeded, landlockTruncates, landlockSignals = 2, 3, 6

// keptCapabilities are those that RDMA needs, and that root needs to read what users have: locked memory, raw queue
// pairs, addresses, realtime threads.  Others, such as those to trace processes and to manage the system, are dropped.
var keptCapabilities = []int{
	unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_NET_BIND_SERVICE, unix.CAP_NET_ADMIN, unix.CAP_NET_RAW,
	unix.CAP_IPC_LOCK, unix.CAP_SYS_NICE, unix.CAP_SYS_RESOURCE,
}

const (
	accessRead    = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	accessExecute = accessRead | unix.LANDLOCK_ACCESS_FS_EXECUTE
	accessWrite   = accessRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_DIR
	// accessLink is more than accessWrite. The next run follows a symbolic link in place of a file that it writes,
	// or of a folder that it restricts itself to.
	accessLink = accessWrite | unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	// accessAll is what is refused where no rule allows it: all of version 3.
	accessAll = accessExecute | accessLink | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK
	// accessFile is what a rule for a file, which is no folder, may have.
	accessFile = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_EXECUTE
)

// standardStreams are the descriptors that a program is started with: input, output and errors.
const standardStreams = 3

// landlockVersion is 0 without landlock.
func landlockVersion() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// restrict restricts this thread to files and makes it this program anew; it returns when it cannot.
func restrict(files Files, environment []string) error {
	runtime.LockOSThread()
	handled := uint64(accessAll)
	if landlockVersion() < landlockTruncates {
		handled &^= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	attributes := unix.LandlockRulesetAttr{Access_fs: handled}
	size := unsafe.Sizeof(attributes.Access_fs)
	if landlockVersion() >= landlockSignals {
		attributes.Scoped, size = unix.LANDLOCK_SCOPE_SIGNAL, unsafe.Sizeof(attributes)
	}
	descriptor, _, errno := unix.Syscall(
		unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attributes)), size, 0,
	)
	if errno != 0 {
		return fmt.Errorf("landlock_create_ruleset: %w", errno)
	}
	rules := os.NewFile(descriptor, "landlock") // closed by the exec, or with the process that reports the error
	for _, each := range []struct {
		paths  []string
		access uint64
	}{{files.Read, accessRead}, {files.Write, accessWrite}, {files.Link, accessLink}, {files.Execute, accessExecute}} {
		for _, path := range each.paths {
			if err := allow(rules, path, each.access&handled); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	for _, own := range files.Own {
		if err := allowOwn(rules, own, accessWrite&handled); err != nil {
			return err
		}
	}
	if err := noNewPrivileges(); err != nil {
		return err
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	// No rule restricts the files that the parent has left open.
	if err := unix.CloseRange(standardStreams, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close_range: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, rules.Fd(), 0, 0); errno != 0 {
		return fmt.Errorf("landlock_restrict_self: %w", errno)
	}
	return &fs.PathError{
		Op: "execute again", Path: "/proc/self/exe", Err: syscall.Exec("/proc/self/exe", os.Args, environment),
	}
}

// dropCapabilities drops all but keptCapabilities of this thread.  Without new privileges, the program that it executes
// has no more, also as root (capabilities(7)).
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have, kept [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil {
		return fmt.Errorf("capget: %w", err)
	}
	for _, each := range keptCapabilities {
		kept[each/32].Permitted |= 1 << (each % 32)
	}
	for word := range have {
		have[word].Permitted &= kept[word].Permitted
		have[word].Effective &= kept[word].Permitted
		have[word].Inheritable &= kept[word].Permitted
	}
	if err := unix.Capset(&header, &have[0]); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	return nil
}

// allow adds a rule.
func allow(rules *os.File, path string, access uint64) error {
	descriptor, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(descriptor)
	var info unix.Stat_t
	if err := unix.Fstat(descriptor, &info); err != nil {
		return &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if info.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= accessFile
	}
	return addRule(rules, descriptor, path, access)
}

// allowOwn adds a rule for a folder of this user.  It adds none for another user's folder, or for one that a link leads
// to: the process cannot write there.
func allowOwn(rules *os.File, own Own, access uint64) error {
	above, err := unix.Open(own.Above, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(above)
	descriptor, err := unix.Openat2(above, own.Path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
	})
	if err != nil {
		return nil
	}
	defer unix.Close(descriptor)
	var info unix.Stat_t
	if err := unix.Fstat(descriptor, &info); err != nil {
		return &fs.PathError{Op: "stat", Path: own.Path, Err: err}
	}
	if int(info.Uid) != os.Geteuid() {
		return nil
	}
	return addRule(rules, descriptor, own.Path, access)
}

func addRule(rules *os.File, descriptor int, path string, access uint64) error {
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(descriptor)}
	if _, _, errno := unix.Syscall6(
		unix.SYS_LANDLOCK_ADD_RULE, rules.Fd(), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0,
		0,
	); errno != 0 {
		return &fs.PathError{Op: "landlock_add_rule", Path: path, Err: errno}
	}
	return nil
}
