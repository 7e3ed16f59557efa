package rdma

import (
	"encoding/binary"
	"net/netip"
	"time"
	"unsafe"
)

// SetOption sets an option of the endpoint.
func (ep *EP) SetOption(level OptionLevel, option uint32, value []byte) error {
	data := unsafe.Pointer(unsafe.SliceData(value))
	return check("set_option", abiSetOption(ep.Handle, level, option, data, uint32(len(value))))
}

// SetTOS sets the type of service of the connection's packets, before the address is resolved.
func (ep *EP) SetTOS(tos uint8) error {
	return ep.SetOption(OptionID, uint32(IDOptionTOS), []byte{tos})
}

// SetReuseAddr lets the endpoint share its address with others that do, before it is bound.
func (ep *EP) SetReuseAddr(reuse bool) error {
	return ep.SetOption(OptionID, uint32(IDOptionReuseAddr), truth(reuse))
}

// SetAFOnly keeps an IPv6 endpoint bound to any address from taking IPv4 connections, before it is bound.
func (ep *EP) SetAFOnly(only bool) error {
	return ep.SetOption(OptionID, uint32(IDOptionAFOnly), truth(only))
}

// SetAckTimeout sets the QP's acknowledgement timeout to 4.096 us * 2^code, before connect or accept.
func (ep *EP) SetAckTimeout(code uint8) error {
	return ep.SetOption(OptionID, uint32(IDOptionAckTimeout), []byte{code})
}

func truth(value bool) []byte {
	if value {
		return binary.LittleEndian.AppendUint32(nil, 1)
	}
	return make([]byte, 4)
}

// Bind gives an endpoint of CreateID its own address.
func (ep *EP) Bind(local netip.AddrPort) error {
	address := AddressFrom(local)
	return check("bind_addr", abiBindAddr(ep.Handle, &address))
}

// ResolveAddr finds the device that leads to the destination; ADDR_RESOLVED follows, or Complete.
func (ep *EP) ResolveAddr(destination netip.AddrPort, timeout time.Duration) error {
	address := AddressFrom(destination)
	return check("resolve_addr", abiResolveAddr(ep.Handle, nil, &address, uint32(timeout.Milliseconds())))
}

// ResolveRoute finds the route to the resolved address; ROUTE_RESOLVED follows, or Complete.
func (ep *EP) ResolveRoute(timeout time.Duration) error {
	return check("resolve_route", abiResolveRoute(ep.Handle, uint32(timeout.Milliseconds())))
}

// QueryRoute returns the route that ResolveRoute found, as SetOption takes it for another endpoint (level IB, PATH).
func (ep *EP) QueryRoute() ([]byte, error) {
	path := make([]byte, 4096)
	result := abiQueryRoute(ep.Handle, unsafe.Pointer(&path[0]), uint32(len(path)))
	return path[:max(result, 0)], check("query_route", result)
}

// JoinMulticast joins a group; MULTICAST_JOIN follows, or Complete.
func (ep *EP) JoinMulticast(group netip.Addr, tag uint64) error {
	address := AddressFrom(netip.AddrPortFrom(group, 0))
	return check("join_multicast", abiJoinMulticast(ep.Handle, &address, int64(tag)))
}

// JoinMulticastEx joins a group as a full member, or as one that only sends.
func (ep *EP) JoinMulticastEx(group netip.Addr, flags JoinFlags, tag uint64) error {
	address := AddressFrom(netip.AddrPortFrom(group, 0))
	return check("join_multicast_ex", abiJoinMulticastEx(ep.Handle, &address, flags, int64(tag)))
}

// LeaveMulticast leaves a group.
func (ep *EP) LeaveMulticast(group netip.Addr) error {
	address := AddressFrom(netip.AddrPortFrom(group, 0))
	return check("leave_multicast", abiLeaveMulticast(ep.Handle, &address))
}

// GetAddrInfo finds the address of a node and service.
func GetAddrInfo(node, service string, hints AddrQuery, timeout time.Duration) (*AddrResult, error) {
	hints.name(node, service)
	found := &AddrResult{}
	found.StructSize = uint32(unsafe.Sizeof(*found))
	if err := check("getaddrinfo", abiGetAddrInfo(&hints, found, int64(timeout))); err != nil {
		return nil, err
	}
	return found, nil
}

// ResolveAddrInfo starts to find the address of a node and service; ADDRINFO_RESOLVED follows, or Complete.
func (ep *EP) ResolveAddrInfo(node, service string, hints AddrQuery) error {
	hints.name(node, service)
	return check("resolve_addrinfo", abiResolveAddrInfo(ep.Handle, &hints))
}

// QueryAddrInfo returns what ResolveAddrInfo found.
func (ep *EP) QueryAddrInfo() (*AddrResult, error) {
	found := &AddrResult{}
	found.StructSize = uint32(unsafe.Sizeof(*found))
	if err := check("query_addrinfo", abiQueryAddrInfo(ep.Handle, found)); err != nil {
		return nil, err
	}
	return found, nil
}

func (q *AddrQuery) name(node, service string) {
	q.StructSize = uint32(unsafe.Sizeof(*q))
	copy(q.Node[:len(q.Node)-1], node)
	copy(q.Service[:len(q.Service)-1], service)
}
