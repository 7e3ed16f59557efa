package rdmacore

// #include <sys/socket.h>
// #include "core/core.h"
import "C"

import (
	"net"
	"net/netip"
	"strconv"
)

// toCAddress converts an address; the zero AddrPort becomes "none".  An IPv4-mapped IPv6 address is
// taken as IPv4, since rdma_cm finds devices by the address of their network interface.
func toCAddress(address netip.AddrPort) C.struct_core_address {
	var c C.struct_core_address
	ip := address.Addr().Unmap()
	if !ip.IsValid() {
		return c
	}
	c.port = C.uint16_t(address.Port())
	if ip.Is4() {
		c.family = C.AF_INET
		raw := ip.As4()
		for i, b := range raw {
			c.ip[i] = C.uint8_t(b)
		}
		return c
	}
	c.family = C.AF_INET6
	for i, b := range ip.As16() {
		c.ip[i] = C.uint8_t(b)
	}
	c.scope_id = C.uint32_t(scopeOf(ip.Zone()))
	return c
}

// fromCAddress is the reverse; a scope becomes a zone of digits.
func fromCAddress(c *C.struct_core_address) netip.AddrPort {
	switch c.family {
	case C.AF_INET:
		var raw [4]byte
		for i := range raw {
			raw[i] = byte(c.ip[i])
		}
		return netip.AddrPortFrom(netip.AddrFrom4(raw), uint16(c.port))
	case C.AF_INET6:
		var raw [16]byte
		for i := range raw {
			raw[i] = byte(c.ip[i])
		}
		ip := netip.AddrFrom16(raw)
		if c.scope_id != 0 {
			ip = ip.WithZone(strconv.FormatUint(uint64(c.scope_id), 10))
		}
		return netip.AddrPortFrom(ip, uint16(c.port))
	}
	return netip.AddrPort{}
}

// scopeOf turns an IPv6 zone, the name or the number of an interface, into its number; 0 if there is none.
func scopeOf(zone string) uint32 {
	if zone == "" {
		return 0
	}
	if number, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(number)
	}
	if link, err := net.InterfaceByName(zone); err == nil {
		return uint32(link.Index)
	}
	return 0
}
