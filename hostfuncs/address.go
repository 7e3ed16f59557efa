package hostfuncs

import (
	"net/netip"
	"strconv"
	"structs"
	"syscall"
)

// Address is an IP address and port in guest memory.
type Address struct {
	_       structs.HostLayout
	Family  uint16   `abi:"family" doc:"2 for IPv4, 10 for IPv6 (Linux's AF_INET and AF_INET6), 0 for none"`
	Port    uint16   `abi:"port" doc:"host byte order"`
	ScopeID uint32   `abi:"scope_id" doc:"IPv6 link-local addresses only"`
	IP      [16]byte `abi:"ip" doc:"network byte order; IPv4 uses the first four bytes"`
}

// Linux's address families, for guests compiled for any system.
const (
	familyIPv4 = 2
	familyIPv6 = 10
)

// addrPort is the address in Go's form, the zero one for family 0.
func (a *Address) addrPort() (netip.AddrPort, syscall.Errno) {
	switch a.Family {
	case 0:
		return netip.AddrPortFrom(netip.Addr{}, a.Port), 0
	case familyIPv4:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(a.IP[:4])), a.Port), 0
	case familyIPv6:
		ip := netip.AddrFrom16(a.IP)
		if a.ScopeID != 0 {
			ip = ip.WithZone(strconv.FormatUint(uint64(a.ScopeID), 10))
		}
		return netip.AddrPortFrom(ip, a.Port), 0
	}
	return netip.AddrPort{}, syscall.EAFNOSUPPORT
}

// address reads an optional address; the zero one for a null pointer.
func (i *Instance) address(parameter string, at Pointer) (netip.AddrPort, int32) {
	if at == 0 {
		return netip.AddrPort{}, 0
	}
	given, wrong := read[Address](i, at)
	if wrong != 0 {
		return netip.AddrPort{}, i.badPointer(parameter, wrong)
	}
	address, errno := given.addrPort()
	if errno != 0 {
		return address, i.refuse(errno, "an address family is 2 (IPv4), 10 (IPv6) or 0")
	}
	return address, 0
}

// addressOf is an address in the guest's form.
func addressOf(from netip.AddrPort) Address {
	address := Address{Port: from.Port()}
	ip := from.Addr()
	switch {
	case ip.Is4() || ip.Is4In6():
		address.Family = familyIPv4
		four := ip.As4()
		copy(address.IP[:], four[:])
	case ip.Is6():
		address.Family = familyIPv6
		address.IP = ip.As16()
		scope, err := strconv.ParseUint(ip.Zone(), 10, 32)
		if err == nil {
			address.ScopeID = uint32(scope)
		}
	}
	return address
}
