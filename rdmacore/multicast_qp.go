package rdmacore

// #include "core.h"
import "C"

import (
	"net/netip"
	"syscall"
)

// AttachMulticast lets a datagram QP receive what is sent to a group (ibv_attach_mcast(3)), whose GID may be
// given as the IPv4 address that it stands for; lid is the group's in InfiniBand, else 0.  EINVAL for another
// kind of QP or no group.
func (q *QP) AttachMulticast(gid netip.Addr, lid uint16) error {
	return q.group("ibv_attach_mcast", gid, func(c *C.union_ibv_gid) C.int {
		return C.core_attach_mcast(q.id.native(), q.c, c, C.uint16_t(lid))
	})
}

// DetachMulticast ends AttachMulticast (ibv_detach_mcast(3)).  EINVAL for a group that the QP is not attached to.
func (q *QP) DetachMulticast(gid netip.Addr, lid uint16) error {
	return q.group("ibv_detach_mcast", gid, func(c *C.union_ibv_gid) C.int {
		return C.core_detach_mcast(q.id.native(), q.c, c, C.uint16_t(lid))
	})
}

func (q *QP) group(op string, gid netip.Addr, call func(*C.union_ibv_gid) C.int) error {
	switch {
	case !q.open():
		return closed(op, "QP")
	case !gid.IsValid():
		return fail(op, syscall.EINVAL, "no GID of a group")
	}
	c := C.union_ibv_gid(gidBytes(gid))
	return check(op, int(call(&c)))
}
