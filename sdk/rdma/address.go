package rdma

import (
	"net/netip"
	"strconv"
)

// Linux's address families; those of WASI are others.
const (
	familyIPv4 = 2
	familyIPv6 = 10
)

// AddressFrom makes an Address; the zero AddrPort is "none".
func AddressFrom(from netip.AddrPort) Address {
	address := Address{Port: from.Port()}
	switch ip := from.Addr().Unmap(); {
	case ip.Is4():
		address.Family = familyIPv4
		four := ip.As4()
		copy(address.IP[:], four[:])
	case ip.Is6():
		address.Family = familyIPv6
		address.IP = ip.As16()
		if scope, err := strconv.ParseUint(ip.Zone(), 10, 32); err == nil {
			address.ScopeID = uint32(scope)
		}
	}
	return address
}

// AddrPort is the address in Go's form, zero for "none".
func (a *Address) AddrPort() netip.AddrPort {
	switch a.Family {
	case familyIPv4:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(a.IP[:4])), a.Port)
	case familyIPv6:
		ip := netip.AddrFrom16(a.IP)
		if a.ScopeID != 0 {
			ip = ip.WithZone(strconv.FormatUint(uint64(a.ScopeID), 10))
		}
		return netip.AddrPortFrom(ip, a.Port)
	}
	return netip.AddrPort{}
}
