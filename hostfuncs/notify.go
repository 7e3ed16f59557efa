package hostfuncs

import (
	"context"

	"rdmarun/rdmacore"
)

func notifyFunctions() []Function {
	cq := Param{"cq", HandleOf, "cq", ""}
	return []Function{
		{
			Name: "req_notify", Since: v1_3, Capability: CapabilityWork,
			Doc: "Asks for one event at the next completion (ibv_req_notify_cq(3)). What had completed before raises " +
				"none: poll once more before wait_cq_event.",
			Params:  []Param{cq, {"solicited_only", U32, "", "1: only at one that its sender asked an event for, or an error"}},
			binding: bind2((*Instance).requestNotify),
		},
		{
			Name: "wait_cq_event", Since: v1_3, Capability: CapabilityWork, Blocking: true,
			Doc: "Waits for the event that req_notify asked for (ibv_get_cq_event(3)), which is acknowledged then. It " +
				"does not poll.",
			Params:  []Param{cq, {"timeout_ns", I64, "", "how long to wait; -1 without limit"}},
			Errors:  "ETIMEDOUT: nothing completed in time. ECANCELED: the guest was asked to stop.",
			binding: bind2((*Instance).waitCQEvent),
		},
	}
}

func (i *Instance) requestNotify(handle Handle, solicitedOnly uint32) int32 {
	return i.onCQ(handle, func(cq *rdmacore.CQ) int32 { return i.done(cq.RequestNotify(solicitedOnly != 0)) })
}

func (i *Instance) waitCQEvent(handle Handle, timeout Nanoseconds) int32 {
	return i.onCQ(handle, func(cq *rdmacore.CQ) int32 {
		return i.wait(timeout, func(ctx context.Context) error { return cq.WaitEvent(ctx) })
	})
}

func (i *Instance) onCQ(handle Handle, do func(*rdmacore.CQ) int32) int32 {
	cq, ok := i.cqs.get(handle)
	if !ok {
		return i.badHandle(KindCQ)
	}
	return do(cq)
}
