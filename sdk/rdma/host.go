package rdma

import (
	"net/netip"
	"time"
)

// Forever is a timeout that is the guest's own time limit.
const Forever = time.Duration(-1)

// HostVersion is the version of the ABI that the host has, major<<16 | minor.
func HostVersion() int { return int(abiABIVersion()) }

// HasFunction reports whether the host has a function of that name for this guest.
func HasFunction(name string) bool {
	at, length := pointer(name)
	return abiHasFunction(at, length) == 1
}

// Clock reads the monotonic clock of the run.
func Clock() time.Duration {
	var now uint64
	abiClockNS(&now)
	return time.Duration(now)
}

// Yield lets others run that wait for this processor.  A guest that spins calls it now and then, for its peer
// may be one of them.
func Yield() { abiSchedYield() }

// Log writes a line to the log of the run.
func Log(level LogLevel, text string) {
	at, length := pointer(text)
	_ = abiLog(level, at, length)
}

// Barrier waits until every party of the barrier has come to it.
func Barrier(name string, timeout time.Duration) error {
	at, length := pointer(name)
	return check("barrier", abiBarrier(at, length, int64(timeout)))
}

// StopRequested reports whether the run has asked this guest to end.
func StopRequested() bool { return abiStopRequested() == 1 }

// DeviceAddress is an IP address by which peers reach the default device.
func DeviceAddress() (netip.Addr, error) {
	var address Address
	if err := check("device_address", abiDeviceAddress(0, &address)); err != nil {
		return netip.Addr{}, err
	}
	return address.AddrPort().Addr(), nil
}
