package hostfuncs

import "rdmarun/rdmacore"

func channelFunctions() []Function {
	return []Function{
		{
			Name: "create_event_channel", Since: v1, Capability: CapabilityCM,
			Doc:     "Makes an event channel, on which endpoints report (rdma_create_event_channel(3)).",
			Result:  "the event channel's handle",
			Errors:  "ENODEV: the provider has no device.",
			binding: bind0((*Instance).createEventChannel),
		},
		{
			Name: "destroy_event_channel", Since: v1, Capability: CapabilityCM,
			Doc:     "Closes an event channel (rdma_destroy_event_channel(3)).",
			Params:  []Param{{"channel", HandleOf, "event_channel", ""}},
			Errors:  "EBUSY: endpoints of it are left.",
			binding: bind1((*Instance).destroyEventChannel),
		},
	}
}

func (i *Instance) createEventChannel() int32 {
	return create(i, &i.channels, channelCost, i.provider.CreateEventChannel, (*rdmacore.EventChannel).Close)
}

func (i *Instance) destroyEventChannel(handle Handle) int32 {
	return destroy(i, &i.channels, handle, (*rdmacore.EventChannel).Close)
}
