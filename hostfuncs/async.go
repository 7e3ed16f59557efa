package hostfuncs

import (
	"context"
	"structs"
	"syscall"

	"rdmarun/rdmacore"
)

// AsyncEvent is ibv_async_event in guest memory, acknowledged already.
type AsyncEvent struct {
	_          structs.HostLayout
	StructSize uint32 `abi:"struct_size" doc:"size of this struct as the guest knows it, set before the call"`
	Type       uint32 `abi:"event" enum:"async_event_type" doc:""`
	QP         Handle `abi:"qp" doc:"events of a QP: the QP; else 0"`
	CQ         Handle `abi:"cq" doc:"events of a CQ: the CQ; else 0"`
	SRQ        Handle `abi:"srq" doc:"events of a shared receive queue: the queue; else 0"`
	Port       uint32 `abi:"port" doc:"events of a port: its number; else 0"`
}

func asyncFunctions() []Function {
	return []Function{{
		Name: "wait_async", Since: v1_4, Capability: CapabilityWork, Blocking: true,
		Doc: "Waits for an asynchronous event and takes it (ibv_get_async_event(3), ibv_ack_async_event(3)). It " +
			"is of one of the guest's own QPs, CQs and shared receive queues, of a port, or of the device. Those of " +
			"an object go with it. The device reports events of a port and of itself once in a process: of several " +
			"waiting guests, one gets the event.",
		Params: []Param{
			{"ep", HandleOf, "ep", "an endpoint of the device; 0 for the default device"},
			{"event", InOut, "async_event", ""},
			{"timeout_ns", I64, "", "how long to wait; -1 without limit"},
		},
		Errors: "ETIMEDOUT: no event came in time. ECANCELED: the guest was asked to stop. ENODEV: there is no " +
			"device, or the endpoint is not on one.",
		binding: bind3((*Instance).waitAsync),
	}}
}

func (i *Instance) waitAsync(handle Handle, at Pointer, timeout Nanoseconds) int32 {
	device, failed := i.deviceOf(handle)
	if failed != 0 {
		return failed
	}
	if wrong := roomFor[AsyncEvent](i, at); wrong != 0 {
		return i.badPointer("event", wrong)
	}
	var event rdmacore.AsyncEvent
	failed = i.wait(timeout, func(ctx context.Context) (err error) {
		event, err = device.WaitAsyncEvent(ctx, i.concerned)
		return err
	})
	if failed != 0 {
		return failed
	}
	out := AsyncEvent{Type: uint32(event.Type), Port: uint32(event.Port),
		QP: i.qps.find(event.QP), CQ: i.cqs.find(event.CQ), SRQ: i.srqs.find(event.SRQ)}
	if wrong := writeSized(i, at, &out); wrong != 0 {
		return i.refuse(syscall.EFAULT, "event was changed during the call")
	}
	return 0
}

// concerned reports whether an event is one that the guest may take.  Other readers of the device call it, too, but
// only while the guest waits, and so the tables do not change.
func (i *Instance) concerned(event rdmacore.AsyncEvent) bool {
	return !event.OfObject() || i.qps.find(event.QP) != 0 || i.cqs.find(event.CQ) != 0 || i.srqs.find(event.SRQ) != 0
}
