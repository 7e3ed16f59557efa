package hostfuncs

import (
	"context"
	"structs"
	"syscall"
	"unsafe"

	"rdmarun/rdmacore"
)

// CMEvent is rdma_cm_event in guest memory, acknowledged already.
type CMEvent struct {
	_          structs.HostLayout
	StructSize uint32    `abi:"struct_size" doc:"size of this struct as the guest knows it, set before the call"`
	EP         Handle    `abi:"ep" doc:"the endpoint of the event; for CONNECT_REQUEST the new endpoint, the guest's to destroy"`
	Listener   Handle    `abi:"listener" doc:"CONNECT_REQUEST: the listening endpoint; else 0"`
	Type       uint32    `abi:"event" enum:"cm_event_type" doc:""`
	Status     int32     `abi:"status" doc:"0, a negative errno, or a positive reason of the peer (REJECTED, UNREACHABLE)"`
	Reserved   uint32    `abi:"reserved" doc:"0"`
	Param      ConnParam `abi:"param" doc:"what the peer sent with the message, seen from this side"`
	AH         AHAttr    `abi:"ah" doc:"datagrams: how to reach the peer or the group; param.qp_num is its QP"`
	QKey       uint32    `abi:"qkey" doc:"datagrams: of the peer or the group"`
	Held       Handle    `abi:"held" doc:"of a channel that holds its events: for ack_event; else 0"`
	Arg        uint64    `abi:"arg" doc:"multicast: the tag of the join; USER: that of write_event"`
}

func eventFunctions() []Function {
	return []Function{{
		Name: "wait_event", Since: v1, Capability: CapabilityCM, Blocking: true,
		Doc: "Waits for an event and takes it (rdma_get_cm_event(3), rdma_ack_cm_event(3)). A request's " +
			"new endpoint, and its QP if the listener was made with qp_init_attr, exist when it returns. " +
			"Events of other endpoints stay for other calls.",
		Params: []Param{
			{"channel", HandleOf, "event_channel", "0 for that of ep, which a synchronous one has too"},
			{"ep", HandleOf, "ep", "the endpoint to wait for (events of a listener are its " +
				"CONNECT_REQUESTs); 0 for any"},
			{"event", InOut, "cm_event", ""},
			{"timeout_ns", I64, "", "how long to wait; -1 without limit"},
		},
		Errors: "ETIMEDOUT: no event came in time. ECANCELED: the guest was asked to stop. ENOMEM and " +
			"others: the QP of a request could not be made, and the request was rejected.",
		binding: bind4((*Instance).waitEvent),
	}}
}

func (i *Instance) waitEvent(channelHandle, epHandle Handle, at Pointer, timeout Nanoseconds) int32 {
	channel, failed := i.channelOf(channelHandle)
	if failed != 0 {
		return failed
	}
	var only *rdmacore.ID
	if epHandle != 0 {
		ep, ok := i.endpoints.get(epHandle)
		if !ok {
			return i.badHandle(kindEP)
		}
		only = ep.id
		if channel == nil {
			channel = ep.channel
		}
	}
	if channel == nil {
		return i.badHandle(kindChannel)
	}
	if wrong := roomFor[CMEvent](i, at); wrong != 0 {
		return i.badPointer("event", wrong)
	}
	event, failed := i.nextEvent(channel, only, timeout)
	if failed != 0 {
		return failed
	}
	return i.deliver(channel, event, at)
}

func (i *Instance) nextEvent(
	channel *rdmacore.EventChannel, id *rdmacore.ID, timeout Nanoseconds,
) (event *rdmacore.Event, failed int32) {
	if timeout != 0 {
		failed = i.wait(timeout, func(ctx context.Context) (err error) {
			if id == nil {
				event, err = channel.GetEvent(ctx)
			} else {
				event, err = channel.Wait(ctx, id)
			}
			return err
		})
		return event, failed
	}
	event, err := channel.Poll(id)
	if err != nil {
		return nil, i.fail(err)
	}
	if event == nil {
		return nil, i.refuse(syscall.ETIMEDOUT, "no event has come")
	}
	return event, 0
}

// deliver writes an event, after giving the endpoint that a request brings its handle.
func (i *Instance) deliver(channel *rdmacore.EventChannel, event *rdmacore.Event, at Pointer) int32 {
	out := cmEventOf(event)
	if event.Type == rdmacore.EventConnectRequest {
		out.Listener = i.byID[event.Listener]
		listener, _ := i.endpoints.get(out.Listener)
		handle := i.addChild(channel, event.ID, listener)
		if handle < 0 {
			if event.Held() {
				event.Ack() // the guest does not get it
			}
			return handle
		}
		out.EP = Handle(handle)
	} else {
		out.EP = i.byID[event.ID]
		i.creditEvent(out.EP, event)
	}
	held := i.nameHeld(event)
	if held < 0 {
		return held
	}
	out.Held = Handle(held)
	if wrong := writeSized(i, at, &out); wrong != 0 {
		return i.refuse(syscall.EFAULT, "event was changed during the call")
	}
	return 0
}

func cmEventOf(event *rdmacore.Event) CMEvent {
	out := CMEvent{
		StructSize: uint32(unsafe.Sizeof(CMEvent{})),
		Type:       uint32(event.Type),
		Status:     int32(event.Status),
		Param:      connParamOf(&event.Conn, event.PrivateData),
		Arg:        event.Arg,
	}
	if event.UD != nil {
		out.AH, out.QKey = ahAttrOf(&event.UD.AH), event.UD.QKey
	}
	return out
}
