package rdmacore

// #include "core/core.h"
import "C"

import "net/netip"

// LocalAddr is the local address, zero while there is none.
func (id *ID) LocalAddr() netip.AddrPort {
	if !id.open() {
		return netip.AddrPort{}
	}
	var c C.struct_core_address
	C.core_local_address(id.c, &c)
	return fromCAddress(&c)
}

// PeerAddr is the address of the peer, zero while there is none.
func (id *ID) PeerAddr() netip.AddrPort {
	if !id.open() {
		return netip.AddrPort{}
	}
	var c C.struct_core_address
	C.core_peer_address(id.c, &c)
	return fromCAddress(&c)
}

// SrcPort is the local port, 0 while there is none (rdma_get_src_port(3)).
func (id *ID) SrcPort() uint16 {
	if !id.open() {
		return 0
	}
	return uint16(C.core_src_port(id.native(), id.c))
}

// DstPort is the port of the peer, 0 while there is none (rdma_get_dst_port(3)).
func (id *ID) DstPort() uint16 {
	if !id.open() {
		return 0
	}
	return uint16(C.core_dst_port(id.native(), id.c))
}
