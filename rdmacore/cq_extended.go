package rdmacore

// #include "core/core.h"
import "C"

import (
	"context"
	"structs"
	"syscall"
)

// WCFields are fields of a completion that a queue of CreateCQEx has (enum ibv_create_cq_wc_flags).
type WCFields uint32

// Timestamp is when a completion came; 0 in either where the queue was not made with it, and of failures.
type Timestamp struct {
	_         structs.HostLayout
	Raw       uint64 // ticks of the device's clock, as Device.RawClock has it; of DeviceAttr.CompletionTimestampMask
	Wallclock uint64 // nanoseconds since 1970
}

// CreateCQEx makes a completion queue whose completions have these fields and time stamps (ibv_create_cq_ex(3)).
// It is polled with ibv_start_poll(3), ibv_next_poll and ibv_end_poll, where one of CreateCQ is with ibv_poll_cq(3);
// nothing else is different.  A field that it was not made with is 0.  EOPNOTSUPP for fields that the device
// has not.
func (d *Device) CreateCQEx(entries int, fields WCFields) (*CQ, error) {
	const op = "ibv_create_cq_ex"
	cq, err := d.createCQ(op, entries, func(channel *C.struct_ibv_comp_channel, c **C.struct_ibv_cq) C.int {
		return C.core_create_cq_ex(d.provider.c, d.c, C.int(entries), channel, C.uint64_t(fields), c)
	})
	if failure, ok := err.(*Error); ok && failure.Op == op && failure.Errno == syscall.EOPNOTSUPP {
		failure.Why = "the device has no completions with " + fields.String()
		if fields&(WCFieldTimestamp|WCFieldWallclock) != 0 {
			failure.Why += "; ask for its completion_timestamp_mask, 0 is without time stamps"
		}
	}
	if err != nil {
		return nil, err
	}
	cq.extended, cq.fields = true, fields
	return cq, nil
}

// Fields are those that CreateCQEx was given, and whether it made the queue.
func (c *CQ) Fields() (fields WCFields, extended bool) {
	if c == nil {
		return 0, false
	}
	return c.fields, c.extended
}

// PollTimestamps is PollN that tells when each completion came, which a queue of CreateCQEx knows.  EINVAL when
// stamps has less room than wcs.
func (c *CQ) PollTimestamps(wcs []WC, stamps []Timestamp, attempts uint32) (int, error) {
	stamps, err := c.blank(wcs, stamps)
	if err != nil {
		return 0, err
	}
	return c.poll(wcs, stamps, attempts)
}

// WaitTimestamps is Wait that tells when each completion came, as PollTimestamps does.
func (c *CQ) WaitTimestamps(ctx context.Context, wcs []WC, stamps []Timestamp) (int, error) {
	stamps, err := c.blank(wcs, stamps)
	if err != nil {
		return 0, err
	}
	return c.wait(ctx, wcs, stamps)
}

// blank is what stamps of completions that have none are.
func (c *CQ) blank(wcs []WC, stamps []Timestamp) ([]Timestamp, error) {
	if len(stamps) < len(wcs) {
		return nil, fail("ibv_start_poll", syscall.EINVAL, "room for %d time stamps, of %d completions", len(stamps), len(wcs))
	}
	stamps = stamps[:len(wcs)]
	if c != nil && !c.extended {
		clear(stamps)
	}
	return stamps, nil
}
