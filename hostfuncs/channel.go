package hostfuncs

import "syscall"

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
	channel, err := i.provider.CreateEventChannel()
	if err != nil {
		return i.fail(err)
	}
	return named(i, &i.channels, &eventChannel{core: channel}, channel.Close)
}

func (i *Instance) destroyEventChannel(handle Handle) int32 {
	return destroy(i, &i.channels, handle, (*eventChannel).close)
}

// named gives a new object its handle, or frees it when there are no more of them.
func named[T comparable](i *Instance, table *handleTable[T], object T, free func() error) int32 {
	handle, ok := table.add(object)
	if !ok {
		free()
		return i.refuse(syscall.EMFILE, "65536 objects of the kind "+table.kind.String()+" are the most a guest can have")
	}
	return int32(handle)
}
