package explain

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// kernelNotSupported is the kernel's own "not supported", which programs should never see (linux/errno.h), and do.
const kernelNotSupported syscall.Errno = 524

// ErrnoName is the name of an errno as the man pages of verbs have it, "" for a number without one.
func ErrnoName(errno syscall.Errno) string {
	switch errno {
	case syscall.EOPNOTSUPP:
		return "EOPNOTSUPP" // x/sys has the other name of that number, ENOTSUP
	case kernelNotSupported:
		return "ENOTSUPP"
	}
	return unix.ErrnoName(errno)
}

// errnos are the errors of librdmacm and libibverbs, as their manual pages use them.
func errnos() []Entry {
	return []Entry{
		{"EPERM", "not permitted", []string{"the kernel's RDMA modules are of another version than the libraries"}},
		{"ENOENT", "no such object", nil},
		{"EBADF", "the object was destroyed before", nil},
		{"EAGAIN", "nothing there yet", nil},
		{"ENOMEM", "out of memory, or the queue is full", []string{"more requests posted than max_send_wr or max_recv_wr", "the limit of locked memory (ulimit -l)"}},
		{"EACCES", "no access", []string{"/dev/infiniband is not yours to open", "a port below 1024"}},
		{"EFAULT", "a bad address", nil},
		{"EIO", "the device does not answer", []string{"it was removed: what is of it can only be destroyed (DEVICE_FATAL, DEVICE_REMOVAL)"}},
		{"ENXIO", "the device of the endpoint was removed", []string{"after DEVICE_REMOVAL an endpoint can only be destroyed"}},
		{"EBUSY", "in use", []string{"something made from it still lives"}},
		{"ENODEV", "no RDMA device leads there", []string{"an address of a network without an RDMA device"}},
		{"EINVAL", "invalid", []string{"the endpoint is in the wrong state for this call", "a value the device or the message cannot carry"}},
		{"ENOSYS", "this provider does not have the operation", nil},
		{"EOPNOTSUPP", "the device or its driver does not have that", []string{"a software device: soft, rdma_rxe and siw have no XRC and no ECE, for instance", "an older kernel", "what a device has: query_device, ibv_devinfo -v"}},
		{"ENOTSUPP", "the kernel does not have that (524, which is its own)", []string{"a multicast group of IPv6 on RoCE v2"}},
		{"ENODATA", "the kernel took only part of a command", []string{"sgid_index names an empty place of the port's GID table"}},
		{"EISCONN", "connected already", nil},
		{"ENOTCONN", "not connected", nil},
		{"EADDRINUSE", "the port is taken", []string{"another listener on the same port and address"}},
		{"EADDRNOTAVAIL", "not an address of this machine's RDMA devices", []string{"a typing mistake in the address", "the port is taken by a listener on any address"}},
		{"ENETUNREACH", "no route to that network", nil},
		{"EHOSTUNREACH", "no route to that host", nil},
		{"ECONNREFUSED", "the peer refused the connection", []string{"nobody listens on that port"}},
		{"ETIMEDOUT", "no answer in time", []string{"host down", "a firewall drops UDP port 4791", "wrong network", "a fault of the scenario"}},
	}
}
