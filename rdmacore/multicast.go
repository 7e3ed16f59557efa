package rdmacore

// #include "core/core.h"
import "C"

import (
	"errors"
	"net/netip"
	"slices"
	"syscall"
)

// JoinFlags choose the kind of membership in a multicast group (enum rdma_cm_mc_join_flags).
type JoinFlags int

// JoinMulticast joins a multicast group (rdma_join_multicast(3)).  It ends with MULTICAST_JOIN or MULTICAST_ERROR.  The
// id's QP is attached to the group when MULTICAST_JOIN is read: its UD has the address to send to, its Arg is tag.
// The id must have a device, and be of a datagram port space.
func (id *ID) JoinMulticast(group netip.Addr, tag uint64) error {
	const op = "rdma_join_multicast"
	address, err := id.group(op, group)
	if err != nil {
		return err
	}
	return id.joined(group, tag, id.start(op, group.String(), func() C.int {
		return C.core_join_multicast(id.native(), id.c, &address, C.uint64_t(tag))
	}))
}

// JoinMulticastEx is JoinMulticast as a full member or one that only sends (rdma_join_multicast_ex(3)).
func (id *ID) JoinMulticastEx(group netip.Addr, flags JoinFlags, tag uint64) error {
	const op = "rdma_join_multicast_ex"
	address, err := id.group(op, group)
	if err != nil {
		return err
	}
	if flags < 0 || flags > JoinSendOnlyFullMember {
		return fail(op, syscall.EINVAL, "no way of joining has the number %d", flags)
	}
	return id.joined(group, tag, id.start(op, group.String(), func() C.int {
		return C.core_join_multicast_ex(id.native(), id.c, &address, C.uint32_t(flags), C.uint64_t(tag))
	}))
}

// LeaveMulticast leaves a group (rdma_leave_multicast(3)).  EADDRNOTAVAIL for one that was not joined; EBUSY
// after a second when events of the id are not acknowledged.
func (id *ID) LeaveMulticast(group netip.Addr) error {
	const op = "rdma_leave_multicast"
	address, err := id.group(op, group)
	if err != nil {
		return err
	}
	unread := func(d delivery) bool {
		tag, member := id.groups[group]
		return member && d.key == id && d.event != nil && d.event.OfGroup() && d.event.Arg == tag
	}
	id.channel.releaseUnread(id, unread)
	if err := id.waitAcknowledged(op); err != nil {
		return err
	}
	// A synchronous id may keep MULTICAST_JOIN as its event, which librdmacm would wait for.
	id.channel.mu.Lock()
	defer id.channel.mu.Unlock()
	err = id.call(op, group.String(), func() C.int { return C.core_leave_multicast(id.native(), id.c, &address) })
	if failure, ok := err.(*Error); ok && failure.Errno == syscall.EADDRNOTAVAIL {
		failure.Why = "the id has not joined " + group.String()
	}
	if err == nil {
		// As the kernel drops what it has of the group (ucma_cleanup_mc_events).
		id.channel.discard(unread)
		delete(id.groups, group)
	}
	return err
}

// joined keeps the group and the tag, by which events of the group are recognized.
func (id *ID) joined(group netip.Addr, tag uint64, err error) error {
	if err == nil {
		if id.groups == nil {
			id.groups = make(map[netip.Addr]uint64)
		}
		id.groups[group] = tag
	}
	return err
}

func (id *ID) group(op string, group netip.Addr) (C.struct_core_address, error) {
	switch {
	case !id.open():
		return C.struct_core_address{}, closed(op, "id")
	case !group.IsValid():
		return C.struct_core_address{}, fail(op, syscall.EINVAL, "no group address")
	}
	return toCAddress(netip.AddrPortFrom(group, 0)), nil
}

// AttachMulticast lets a datagram QP receive what is sent to a group (ibv_attach_mcast(3)).  The GID may be
// given as the IPv4 address that is mapped to it; lid is the group's in InfiniBand, else 0.  EINVAL for another
// kind of QP or no group.
func (q *QP) AttachMulticast(gid netip.Addr, lid uint16) error {
	err := q.group("ibv_attach_mcast", gid, func(c *C.union_ibv_gid) C.int {
		return C.core_attach_mcast(q.provider.c, q.c, c, C.uint16_t(lid))
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
		return C.core_detach_mcast(q.provider.c, q.c, c, C.uint16_t(lid))
	})
	if err == nil {
		q.groups = slices.DeleteFunc(q.groups, func(each multicastGroup) bool {
			return each == multicastGroup{gid, lid}
		})
	}
	return err
}

// leaveGroups ends what AttachMulticast began.  A device that is gone (EIO) has no members, and a group may have been
// left by rdma_leave_multicast(3), too (EINVAL).
func (q *QP) leaveGroups() error {
	var errs []error
	for _, group := range slices.Clone(q.groups) {
		if err := q.DetachMulticast(group.gid, group.lid); err != nil && !errors.Is(err, syscall.EINVAL) &&
			!errors.Is(err, syscall.EIO) {
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
