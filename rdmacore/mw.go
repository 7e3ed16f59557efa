package rdmacore

// #include "core/core.h"
import "C"

import "syscall"

// MWType is how far a memory window reaches (enum ibv_mw_type). A window of type 1 is good for every QP of its PD. One
// of type 2 is good for the QP that bound it, and the peer can invalidate it.
type MWType int

// MW is a memory window: a key for remote use of a part of a region, which a work request makes and ends.
type MW struct {
	c      *C.struct_ibv_mw // nil once deallocated
	pd     *PD
	region *MR // that it was bound to last; drivers of devices use it even for a bind of no bytes
}

// AllocMW allocates a window that is bound to nothing (ibv_alloc_mw(3)).
func (pd *PD) AllocMW(kind MWType) (*MW, error) {
	const op = "ibv_alloc_mw"
	if pd == nil || pd.c == nil {
		return nil, closed(op, "PD")
	}
	mw := &MW{pd: pd}
	if err := check(op, int(C.core_alloc_mw(pd.device.provider.c, pd.c, C.int(kind), &mw.c))); err != nil {
		return nil, err
	}
	return mw, nil
}

// MWBind describes the binding of a window.
type MWBind struct {
	WRID    uint64
	Flags   SendFlags
	MR      *MR    // registered with AccessMWBind; with Length 0 nil is the one that it was bound to last
	Address uint64 // of its first byte, as MR.Address counts
	Length  uint64 // 0: nothing any more (type 1)
	Access  Access // remote rights
}

// BindMW posts a request to bind the window (ibv_bind_mw(3), ibv_post_send(3)); its key is another one from
// then on, good once the request has completed.  EINVAL when window, region and QP are of different PDs.  A QP with
// send operations binds windows of type 2 by its builder (ibv_wr_post(3)): EOPNOTSUPP when SendOpBindMW is not among
// them.  Type 1 is not posted but bound by ibv_bind_mw, which they do not concern.
func (q *QP) BindMW(mw *MW, bind MWBind) error {
	const op = "ibv_bind_mw"
	switch {
	case !q.open():
		return closed(op, "QP")
	case mw == nil || mw.c == nil:
		return closed(op, "MW")
	case bind.MR != nil && bind.MR.c == nil:
		return closed(op, "MR")
	case q.provider.c != mw.pd.device.provider.c:
		return foreign(op, "MW", mw.pd.device.provider, q.provider)
	case bind.MR == nil && bind.Length != 0:
		return fail(op, syscall.EINVAL, "no memory region")
	}
	if bind.MR == nil {
		bind.MR = mw.region
	}
	if bind.MR == nil || bind.MR.c == nil {
		return fail(op, syscall.EINVAL, "the window is bound to no memory region; drivers would crash here")
	}
	c := C.struct_core_mw_bind{wr_id: C.uint64_t(bind.WRID), address: C.uint64_t(bind.Address),
		length: C.uint64_t(bind.Length), flags: C.uint32_t(bind.Flags), access: C.uint32_t(bind.Access)}
	if err := check(op, int(C.core_bind_mw(q.c, q.builder, C.uint64_t(q.built), mw.c, bind.MR.c, &c))); err != nil {
		return err
	}
	mw.region = bind.MR
	return nil
}

// RKey is the key for remote use; 0 once the window is deallocated.
func (mw *MW) RKey() uint32 {
	if mw == nil || mw.c == nil {
		return 0
	}
	return uint32(mw.c.rkey)
}

// Dealloc frees the window, and with it what it is bound to is reached through it no more
// (ibv_dealloc_mw(3)).
func (mw *MW) Dealloc() error {
	const op = "ibv_dealloc_mw"
	if mw == nil || mw.c == nil {
		return closed(op, "MW")
	}
	if err := check(op, int(C.core_dealloc_mw(mw.pd.device.provider.c, mw.c))); err != nil {
		return err
	}
	mw.c = nil
	return nil
}
