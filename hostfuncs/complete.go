package hostfuncs

import (
	"context"
	"syscall"

	"rdmarun/rdmacore"
)

func completeFunctions() []Function {
	ep := Param{"ep", HandleOf, "ep", "a synchronous one"}
	return []Function{
		{
			Name: "complete", Since: v1_1, Capability: CapabilityCM, Blocking: true,
			Doc: "Waits for the end of what the last call of a synchronous endpoint started. The functions of " +
				"librdmacm wait so without a channel. The endpoint's next event ends it, and ep_event has it. 0 at " +
				"once when nothing is under way: a call may come to its end within itself, and gives the result " +
				"then. A wait that is given up can be taken up again.",
			Params: []Param{ep, {"timeout_ns", I64, "", "how long to wait; -1 without limit"}},
			Errors: "ECONNREFUSED: the peer rejected. Others: the status of the event, such as ETIMEDOUT of " +
				"UNREACHABLE. ETIMEDOUT, too: no end came in time. ECANCELED: the guest was asked to stop.",
			binding: bind2((*Instance).complete),
		},
		{
			Name: "get_request", Since: v1_1, Capability: CapabilityCM, Blocking: true,
			Doc: "Waits for a connection request of a synchronous listener (rdma_get_request(3)). The new " +
				"endpoint is synchronous, and has a QP if the listener was made with qp_init_attr. The request " +
				"is its ep_event until its next call; the listener cannot be destroyed meanwhile.",
			Params: []Param{ep, {"timeout_ns", I64, "", "how long to wait; -1 without limit"}},
			Result: "the new endpoint's handle",
			Errors: "EINVAL: not a synchronous listener. ETIMEDOUT: no request came in time. ECANCELED: the guest " +
				"was asked to stop.",
			binding: bind2((*Instance).getRequest),
		},
		{
			Name: "ep_event", Since: v1_1, Capability: CapabilityCM,
			Doc: "Writes the event that ended the last call of a synchronous endpoint, or the request that made " +
				"it.",
			Params:  []Param{ep, {"event", InOut, "cm_event", ""}},
			Errors:  "ENOENT: there is none.",
			binding: bind2((*Instance).epEvent),
		},
	}
}

func (i *Instance) complete(handle Handle, timeout Nanoseconds) int32 {
	ep, ok := i.endpoints.get(handle)
	if !ok {
		return i.badHandle(kindEP)
	}
	failed := i.wait(timeout, func(ctx context.Context) error { return ep.id.Complete(ctx) })
	// An event that ends a call is read, with any status; a wait that is given up leaves it to come.
	for !ep.id.Pending() && ep.events > 0 {
		i.creditEvent(handle, nil)
	}
	return failed
}

func (i *Instance) getRequest(handle Handle, timeout Nanoseconds) int32 {
	ep, ok := i.endpoints.get(handle)
	if !ok {
		return i.badHandle(kindEP)
	}
	var child *rdmacore.ID
	if failed := i.wait(timeout, func(ctx context.Context) (err error) {
		child, err = ep.id.GetRequest(ctx)
		return err
	}); failed != 0 {
		return failed
	}
	return i.addChild(child.Channel(), child, ep)
}

func (i *Instance) epEvent(handle Handle, at Pointer) int32 {
	ep, ok := i.endpoints.get(handle)
	if !ok {
		return i.badHandle(kindEP)
	}
	event := ep.id.Event()
	if event == nil {
		return i.refuse(syscall.ENOENT, "the endpoint keeps no event")
	}
	out := cmEventOf(event)
	out.EP, out.Listener = handle, i.byID[event.Listener]
	if wrong := writeSized(i, at, &out); wrong != 0 {
		return i.badPointer("event", wrong)
	}
	return 0
}
