package hostfuncs

import (
	"context"
	"structs"

	"rdmarun/rdmacore"
)

// Timestamp is rdmacore.Timestamp in guest memory, to the byte.
type Timestamp struct {
	_         structs.HostLayout
	Raw       uint64 `abi:"raw" doc:"ticks of the device's clock, see query_rt_values; with COMPLETION_TIMESTAMP"`
	Wallclock uint64 `abi:"wallclock" doc:"nanoseconds since 1970; with COMPLETION_TIMESTAMP_WALLCLOCK"`
}

func extendedCQFunctions() []Function {
	taking := []Param{{"cq", HandleOf, "cq", "of create_cq_ex; of another one the time stamps are 0"},
		{"wc", Out, "wc", "an array; filled from its start"},
		{"timestamps", Out, "timestamp", "an array like wc"},
		{"max", U32, "", "elements of each"}}
	return []Function{
		{
			Name: "create_cq_ex", Since: v1_4, Capability: CapabilityWork,
			Doc: "Makes a completion queue that has these fields and time stamps of completions " +
				"(ibv_create_cq_ex(3)). It is " +
				"polled and destroyed as any other; a field of wc that it was not made with is 0.",
			Params: []Param{
				cqOwner(),
				{"entries", U32, "", "completions it must hold; one more is lost and ends the QP"},
				{"fields", U32, "wc_fields", ""}},
			Result:  "the CQ's handle",
			Errors:  "EOPNOTSUPP: the device has no such fields. EINVAL: no entries, or more than the device can hold.",
			binding: bind3((*Instance).createCQEx),
		},
		{
			Name: "poll_cq_timestamps", Since: v1_4, Capability: CapabilityWork,
			Doc:     "Takes what has completed, and when that was, without waiting (ibv_start_poll(3)).",
			Params:  taking,
			Result:  "the number of completions, 0 if there are none",
			binding: bind4((*Instance).pollTimestamps),
		},
		{
			Name: "wait_cq_timestamps", Since: v1_4, Capability: CapabilityWork, Blocking: true,
			Doc: "Waits until there is a completion, as wait_cq does, with the time when it came.",
			Params: append(taking[:len(taking):len(taking)], Param{
				"timeout_ns", I64, "", "how long to wait; -1 without limit",
			}),
			Result:  "the number of completions, at least 1",
			Errors:  "ETIMEDOUT: nothing completed in time. ECANCELED: the guest was asked to stop.",
			binding: bind5((*Instance).waitTimestamps),
		},
	}
}

func (i *Instance) createCQEx(epHandle Handle, entries, fields uint32) int32 {
	return i.newCQ(epHandle, entries, func(on cqMaker) (*rdmacore.CQ, error) {
		return on.CreateCQEx(int(entries), rdmacore.WCFields(fields))
	})
}

// stamped finds the arrays of a call that takes completions with their time stamps.
func (i *Instance) stamped(wc, timestamps Pointer, max uint32) ([]rdmacore.WC, []rdmacore.Timestamp, int32) {
	wcs, wrong := view[rdmacore.WC](i, wc, max)
	if wrong != 0 {
		return nil, nil, i.badPointer("wc", wrong)
	}
	stamps, wrong := view[rdmacore.Timestamp](i, timestamps, max)
	if wrong != 0 {
		return nil, nil, i.badPointer("timestamps", wrong)
	}
	return wcs, stamps, 0
}

func (i *Instance) pollTimestamps(handle Handle, wc, timestamps Pointer, max uint32) int32 {
	return i.onCQ(handle, func(cq *rdmacore.CQ) int32 {
		wcs, stamps, failed := i.stamped(wc, timestamps, max)
		if failed != 0 {
			return failed
		}
		n, err := cq.PollTimestamps(wcs, stamps, 1)
		if err != nil {
			return i.fail(err)
		}
		return int32(n)
	})
}

func (i *Instance) waitTimestamps(handle Handle, wc, timestamps Pointer, max uint32, timeout Nanoseconds) int32 {
	n := i.pollTimestamps(handle, wc, timestamps, max)
	if n != 0 {
		return n
	}
	return i.onCQ(handle, func(cq *rdmacore.CQ) int32 {
		wcs, stamps, _ := i.stamped(wc, timestamps, max)
		if failed := i.wait(timeout, func(ctx context.Context) error {
			taken, err := cq.WaitTimestamps(ctx, wcs, stamps)
			n = int32(taken)
			return err
		}); failed != 0 {
			return failed
		}
		return n
	})
}
