package hostfuncs

import (
	"context"
	"math"
	"syscall"
	"time"

	"rdmarun/rdmacore"
)

// maxAttempts bounds spin_cq. At some 50 ns an attempt it returns within a few milliseconds. So a guest which has to
// end does not stay in native code.
const maxAttempts = 1 << 16

func cqFunctions() []Function {
	cq := Param{"cq", HandleOf, "cq", ""}
	wc := Param{"wc", Out, "wc", "an array; filled from its start"}
	max := Param{"max", U32, "", "elements of wc"}
	return []Function{
		{
			Name: "create_cq", Since: v1, Capability: CapabilityWork,
			Doc: "Makes a completion queue (ibv_create_cq(3)), for QPs that share one.",
			Params: []Param{
				cqOwner(),
				{"entries", U32, "", "completions it must hold; one more is lost and ends the QP"}},
			Result:  "the CQ's handle",
			Errors:  "EINVAL: no entries, or more than the device can hold.",
			binding: bind2((*Instance).createCQ),
		},
		{
			Name: "destroy_cq", Since: v1, Capability: CapabilityWork,
			Doc:     "Destroys a CQ of create_cq (ibv_destroy_cq(3)).",
			Params:  []Param{cq},
			Errors:  "EBUSY: a QP uses it. EINVAL: it was made with a QP and goes with it.",
			binding: bind1((*Instance).destroyCQ),
		},
		{
			Name: "resize_cq", Since: v1_3, Capability: CapabilityWork,
			Doc:     "Makes room for a number of completions (ibv_resize_cq(3)).",
			Params:  []Param{cq, {"entries", U32, "", "completions it must hold"}},
			Errors:  "EINVAL: none, more than the device can hold, or fewer than are in it.",
			binding: bind2((*Instance).resizeCQ),
		},
		{
			Name: "moderate_cq", Since: v1_3, Capability: CapabilityWork,
			Doc: "Has one completion event stand for count completions, or for those that come within a period of " +
				"the first of them, whichever is earlier (ibv_modify_cq(3)). 0 in either: an event for each.",
			Params: []Param{cq, {"count", U32, "", "completions an event stands for, up to 65535"},
				{"period_us", U32, "", "microseconds that the first of them waits at most, up to 65535"}},
			Errors:  "EINVAL: more than 65535. EOPNOTSUPP: the device cannot.",
			binding: bind3((*Instance).moderateCQ),
		},
		{
			Name: "poll_cq", Since: v1, Capability: CapabilityWork,
			Doc: "Takes what has completed, without waiting (ibv_poll_cq(3)). Several at once cost a " +
				"tenth of one at a time.",
			Params:  []Param{cq, wc, max},
			Result:  "the number of completions, 0 if there are none",
			binding: bind3((*Instance).pollCQ),
		},
		{
			Name: "spin_cq", Since: v1, Capability: CapabilityWork,
			Doc: "Polls in native code until there is a completion, or `attempts` times. This gives the " +
				"lowest latency to a guest without other work.",
			Params: []Param{cq, wc, max,
				{"attempts", U32, "", "some 50 ns each; more than 65536 are taken as 65536"}},
			Result:  "the number of completions, 0 if there were none",
			binding: bind4((*Instance).spinCQ),
		},
		{
			Name: "wait_cq", Since: v1, Capability: CapabilityWork, Blocking: true,
			Doc: "Waits until there is a completion: polls first, for latency, and sleeps in between " +
				"when none comes.",
			Params: []Param{cq, wc, max,
				{"timeout_ns", I64, "", "how long to wait; -1 without limit"}},
			Result:  "the number of completions, at least 1",
			Errors:  "ETIMEDOUT: nothing completed in time. ECANCELED: the guest was asked to stop.",
			binding: bind4((*Instance).waitCQ),
		},
	}
}

func (i *Instance) createCQ(epHandle Handle, entries uint32) int32 {
	return i.newCQ(epHandle, entries, func(on cqMaker) (*rdmacore.CQ, error) { return on.CreateCQ(int(entries)) })
}

// cqOwner is the parameter that selects where a CQ is made.
func cqOwner() Param {
	return Param{
		"ep", HandleOf, "ep",
		"an endpoint of the device; 0 for the default device; a comp_channel (since 1.6): its events come there",
	}
}

// cqMaker is a device, which gives each CQ a channel, or a channel that CQs share.
type cqMaker interface {
	CreateCQ(entries int) (*rdmacore.CQ, error)
	CreateCQEx(entries int, fields rdmacore.WCFields) (*rdmacore.CQ, error)
}

func (i *Instance) newCQ(place Handle, entries uint32, make func(cqMaker) (*rdmacore.CQ, error)) int32 {
	var on cqMaker
	cost := sharingCQCost(entries)
	if channel, ok := i.compChannels.get(place); ok {
		on = channel
	} else {
		device, failed := i.deviceOf(place)
		if failed != 0 {
			return failed
		}
		on, cost = device, cqCost(entries)
	}
	if entries > 1<<31-1 {
		return i.refuse(syscall.EINVAL, "entries is more than any device can hold")
	}
	return create(i, &i.cqs, cost, func() (*rdmacore.CQ, error) { return make(on) }, (*rdmacore.CQ).Destroy)
}

func (i *Instance) moderateCQ(handle Handle, count, period uint32) int32 {
	if count > math.MaxUint16 || period > math.MaxUint16 {
		return i.refuse(syscall.EINVAL, "count and period are at most 65535")
	}
	return i.onCQ(handle, func(cq *rdmacore.CQ) int32 {
		return i.done(cq.Moderate(uint16(count), time.Duration(period)*time.Microsecond))
	})
}

func (i *Instance) resizeCQ(handle Handle, entries uint32) int32 {
	if entries > 1<<31-1 {
		return i.refuse(syscall.EINVAL, "entries is more than any device can hold")
	}
	return i.onCQ(handle, func(cq *rdmacore.CQ) int32 {
		return resize(i, &i.cqs, handle, resizedCQCost(i.cqs.slot(handle).cost, entries),
			func() error { return cq.Resize(int(entries)) })
	})
}

func (i *Instance) destroyCQ(handle Handle) int32 {
	return destroy(i, &i.cqs, handle, (*rdmacore.CQ).Destroy)
}

func (i *Instance) pollCQ(handle Handle, wc Pointer, max uint32) int32 {
	return i.spinCQ(handle, wc, max, 1)
}

func (i *Instance) spinCQ(handle Handle, wc Pointer, max, attempts uint32) int32 {
	cq, ok := i.cqs.get(handle)
	if !ok {
		return i.badHandle(kindCQ)
	}
	wcs, wrong := view[rdmacore.WC](i, wc, max)
	if wrong != 0 {
		return i.badPointer("wc", wrong)
	}
	n, err := i.work.Poll(cq, wcs, min(attempts, maxAttempts))
	if err != nil {
		return i.fail(err)
	}
	return int32(n)
}

func (i *Instance) waitCQ(handle Handle, wc Pointer, max uint32, timeout Nanoseconds) int32 {
	n := i.pollCQ(handle, wc, max)
	if n != 0 {
		return n
	}
	cq, _ := i.cqs.get(handle)
	wcs, _ := view[rdmacore.WC](i, wc, max)
	if failed := i.wait(timeout, func(ctx context.Context) error {
		taken, err := cq.Wait(ctx, wcs)
		n = int32(taken)
		return err
	}); failed != 0 {
		return failed
	}
	return n
}
