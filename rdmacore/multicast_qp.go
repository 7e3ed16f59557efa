package rdmacore

// #include "core/core.h"
import "C"

import (
	"errors"
	"net/netip"
	"slices"
	"syscall"
)

// AttachMulticast lets a datagram QP receive what is sent to a group (ibv_attach_mcast(3)), whose GID may be
// given as the IPv4 address that it stands for; lid is the group's in InfiniBand, else 0.  EINVAL for another
// kind of QP or no group.
func (q *QP) AttachMulticast(gid netip.Addr, lid uint16) error {
	err := q.group("ibv_attach_mcast", gid, func(c *C.union_ibv_gid) C.int {
		return C.core_attach_mcast(q.id.native(), q.c, c, C.uint16_t(lid))
	})
	if group := (multicastGroup{gid, lid}); err == nil && !slices.Contains(q.groups, group) {
		q.groups = append(q.groups, group)
	}
	return err
}

// multicastGroup is one that a QP is attached to.
type multicastGroup struct {
	gid netip.Addr
	lid uint16
}

// DetachMulticast ends AttachMulticast (ibv_detach_mcast(3)).  EINVAL for a group that the QP is not attached to.
func (q *QP) DetachMulticast(gid netip.Addr, lid uint16) error {
	err := q.group("ibv_detach_mcast", gid, func(c *C.union_ibv_gid) C.int {
		return C.core_detach_mcast(q.id.native(), q.c, c, C.uint16_t(lid))
	})
	if err == nil {
		q.groups = slices.DeleteFunc(q.groups, func(each multicastGroup) bool { return each == multicastGroup{gid, lid} })
	}
	return err
}

// leaveGroups ends what AttachMulticast began.  A device that is gone (EIO) has no members, and a group may have been
// left by rdma_leave_multicast(3), too (EINVAL).
func (q *QP) leaveGroups() error {
	var errs []error
	for _, group := range slices.Clone(q.groups) {
		if err := q.DetachMulticast(group.gid, group.lid); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.EIO) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
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
