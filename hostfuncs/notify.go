package hostfuncs

import (
	"context"

	"rdmarun/rdmacore"
)

func notifyFunctions() []Function {
	cq := Param{"cq", HandleOf, "cq", ""}
	return []Function{
		{
			Name: "create_comp_channel", Since: v1_6, Capability: CapabilityWork,
			Doc: "Makes a completion channel (ibv_create_comp_channel(3)), by which the events of several CQs come: " +
				"those that " +
				"create_cq makes on it. poll_set has IN when there is one.",
			Params:  []Param{{"ep", HandleOf, "ep", "an endpoint of the device; 0 for the default device"}},
			Result:  "the comp_channel's handle",
			Errors:  "ENODEV: there is no device, or the endpoint is not on one.",
			binding: bind1((*Instance).createCompChannel),
		},
		{
			Name: "destroy_comp_channel", Since: v1_6, Capability: CapabilityWork,
			Doc:     "Destroys a completion channel (ibv_destroy_comp_channel(3)).",
			Params:  []Param{{"channel", HandleOf, "comp_channel", ""}},
			Errors:  "EBUSY: there are CQs on it.",
			binding: bind1((*Instance).destroyCompChannel),
		},
		{
			Name: "req_notify", Since: v1_3, Capability: CapabilityWork,
			Doc: "Asks for one event at the next completion (ibv_req_notify_cq(3)). What had completed before raises " +
				"none: poll once more before wait_cq_event.",
			Params: []Param{
				cq, {"solicited_only", U32, "", "1: only at one that its sender asked an event for, or an error"},
			},
			binding: bind2((*Instance).requestNotify),
		},
		{
			Name: "wait_cq_event", Since: v1_3, Capability: CapabilityWork, Blocking: true,
			Doc: "Waits for the event that req_notify asked for (ibv_get_cq_event(3)), which is acknowledged then. " +
				"It does not poll.",
			Params: []Param{{"cq", HandleOf, "cq", "or a comp_channel (since 1.6), for the event of any of its CQs"},
				{"timeout_ns", I64, "", "how long to wait; -1 without limit"}},
			Result:  "of a comp_channel the handle of the CQ that the event is of, else 0",
			Errors:  "ETIMEDOUT: nothing completed in time. ECANCELED: the guest was asked to stop.",
			binding: bind2((*Instance).waitCQEvent),
		},
	}
}

func (i *Instance) requestNotify(handle Handle, solicitedOnly uint32) int32 {
	return i.onCQ(handle, func(cq *rdmacore.CQ) int32 { return i.done(cq.RequestNotify(solicitedOnly != 0)) })
}

func (i *Instance) createCompChannel(epHandle Handle) int32 {
	device, failed := i.deviceOf(epHandle)
	if failed != 0 {
		return failed
	}
	return create(i, &i.compChannels, channelCost, device.CreateCompChannel, (*rdmacore.CompChannel).Destroy)
}

func (i *Instance) destroyCompChannel(handle Handle) int32 {
	return destroy(i, &i.compChannels, handle, (*rdmacore.CompChannel).Destroy)
}

func (i *Instance) waitCQEvent(handle Handle, timeout Nanoseconds) int32 {
	if channel, ok := i.compChannels.get(handle); ok {
		var cq *rdmacore.CQ
		if failed := i.wait(timeout, func(ctx context.Context) (err error) {
			cq, err = channel.GetCQEvent(ctx)
			return err
		}); failed != 0 {
			return failed
		}
		return int32(i.cqs.find(cq))
	}
	return i.onCQ(handle, func(cq *rdmacore.CQ) int32 {
		return i.wait(timeout, func(ctx context.Context) error { return cq.WaitEvent(ctx) })
	})
}

func (i *Instance) onCQ(handle Handle, do func(*rdmacore.CQ) int32) int32 {
	cq, ok := i.cqs.get(handle)
	if !ok {
		return i.badHandle(kindCQ)
	}
	return do(cq)
}
