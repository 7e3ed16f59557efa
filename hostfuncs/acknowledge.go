package hostfuncs

import "rdmarun/rdmacore"

func acknowledgeFunctions() []Function {
	return []Function{
		{
			Name: "hold_events", Since: v1_1, Capability: CapabilityCM,
			Doc: "Sets whether the events of a channel are acknowledged as they are read (the default), or by " +
				"ack_event. One that is not acknowledged keeps its endpoint (a request: " +
				"the listener) from being destroyed or migrated.",
			Params: []Param{{"channel", HandleOf, "event_channel", ""},
				{"hold", U32, "", "1: each event's held is a handle for ack_event; 0: acknowledge at once"}},
			binding: bind2((*Instance).holdEvents),
		},
		{
			Name: "ack_event", Since: v1_1, Capability: CapabilityCM,
			Doc:     "Acknowledges an event of a channel that holds them (rdma_ack_cm_event(3)).",
			Params:  []Param{{"event", HandleOf, "event", "held of cm_event"}},
			binding: bind1((*Instance).ackEvent),
		},
		{
			Name: "write_event", Since: v1_1, Capability: CapabilityCM,
			Doc: "Puts an event of the guest's own, USER, into an endpoint's channel (rdma_write_cm_event(3)).",
			Params: []Param{{"ep", HandleOf, "ep", ""},
				{"status", I64, "", "of the event"}, {"arg", I64, "", "of the event"}},
			Errors:  "ENOSYS: rdma-core is older than 60.",
			binding: bind3((*Instance).writeEvent),
		},
	}
}

func (i *Instance) holdEvents(handle Handle, hold uint32) int32 {
	channel, ok := i.channels.get(handle)
	if !ok {
		return i.badHandle(kindChannel)
	}
	return i.result(channel.HoldEvents(hold != 0))
}

func (i *Instance) ackEvent(handle Handle) int32 {
	return destroy(i, &i.events, handle, (*rdmacore.Event).Ack)
}

func (i *Instance) writeEvent(handle Handle, status, arg int64) int32 {
	return i.start(handle, func(id *rdmacore.ID) error { return id.WriteEvent(int(int32(status)), uint64(arg)) })
}

// nameHeld gives an event that is not acknowledged its handle; 0 for any other.
func (i *Instance) nameHeld(event *rdmacore.Event) int32 {
	if !event.Held() {
		return 0
	}
	return create(i, &i.events, heldCost, func() (*rdmacore.Event, error) { return event, nil }, (*rdmacore.Event).Ack)
}
