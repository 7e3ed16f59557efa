package hostfuncs

import (
	"syscall"

	"rdmarun/rdmacore"
)

func cmFunctions() []Function {
	ep := Param{"ep", HandleOf, "ep", ""}
	return []Function{
		{
			Name: "listen", Since: v1, Capability: CapabilityCM,
			Doc: "Begins to listen; requests arrive as CONNECT_REQUEST events (rdma_listen(3)).",
			Params: []Param{ep,
				{
					"backlog", U32, "",
					"requests kept until they are read; more are dropped silently. 0 for the system's maximum",
				}},
			Errors:  "EINVAL: not a bound, passive endpoint. EADDRINUSE: another endpoint listens there.",
			binding: bind2((*Instance).listen),
		},
		{
			Name: "connect", Since: v1, Capability: CapabilityCM,
			Doc: "Asks the destination for a connection and returns at once (rdma_connect(3)). The answer " +
				"is an event: ESTABLISHED (CONNECT_RESPONSE without a QP), REJECTED, UNREACHABLE or " +
				"CONNECT_ERROR.",
			Params: []Param{ep,
				{"param", In, "conn_param", "0 for the most the device can do and 7 retries of each kind"}},
			Errors: "EINVAL: not a resolved endpoint, more than 56 bytes of private data, a depth beyond the " +
				"device's.",
			binding: bind2((*Instance).connect),
		},
		{
			Name: "accept", Since: v1, Capability: CapabilityCM,
			Doc: "Accepts the request that made this endpoint and returns at once (rdma_accept(3)). " +
				"ESTABLISHED follows. Post receives before it: the peer may send as soon as it has the answer.",
			Params: []Param{ep,
				{"param", In, "conn_param", "0 for the lesser of what was offered and the device can do"}},
			Errors:  "EINVAL: no request is open, or the endpoint has no QP and param is 0.",
			binding: bind2((*Instance).accept),
		},
		{
			Name: "establish", Since: v1, Capability: CapabilityCM,
			Doc:     "Completes a connection after CONNECT_RESPONSE, for endpoints without a QP (rdma_establish(3)).",
			Params:  []Param{ep},
			Errors:  "EINVAL: the endpoint has a QP, which does this by itself.",
			binding: bind1((*Instance).establish),
		},
		{
			Name: "reject", Since: v1, Capability: CapabilityCM,
			Doc: "Rejects the request that made this endpoint; the peer gets REJECTED with status 28 " +
				"(rdma_reject(3)). The endpoint is still to be destroyed.",
			Params: []Param{ep,
				{"private_data", In, "bytes", "handed to the peer; 0 if length is"},
				{"length", U32, "", "of private_data, in bytes; at most 148 for RC"},
			},
			Errors:  "EINVAL: no request is open, or too much private data.",
			binding: bind3((*Instance).reject),
		},
		{
			Name: "disconnect", Since: v1, Capability: CapabilityCM,
			Doc: "Ends the connection and returns at once (rdma_disconnect(3)). Both sides get " +
				"DISCONNECTED; what was posted completes with WR_FLUSH_ERR.",
			Params:  []Param{ep},
			Errors:  "EINVAL: not connected.",
			binding: bind1((*Instance).disconnect),
		},
	}
}

// onID runs a call on an endpoint's id.
func (i *Instance) onID(handle Handle, call func(*rdmacore.ID) error) int32 {
	ep, ok := i.endpoints.get(handle)
	if !ok {
		return i.badHandle(kindEP)
	}
	return i.result(call(ep.id))
}

// start is onID for a call that an event follows: what that takes is charged until it is read.
func (i *Instance) start(handle Handle, call func(*rdmacore.ID) error) int32 {
	return i.onID(handle, func(id *rdmacore.ID) error {
		if err := charge(i, &i.endpoints, handle, eventCost); err != nil {
			return err
		}
		if err := call(id); err != nil {
			credit(i, &i.endpoints, handle, eventCost)
			return err
		}
		ep, _ := i.endpoints.get(handle)
		ep.events++
		return nil
	})
}

// creditEvent is for an event of the endpoint that was read; nil is one that a call was charged for.  Those of a group
// are paid for by its members.
func (i *Instance) creditEvent(handle Handle, event *rdmacore.Event) {
	if event != nil && event.OfGroup() {
		return
	}
	if ep, ok := i.endpoints.get(handle); ok && ep.events > 0 {
		ep.events--
		credit(i, &i.endpoints, handle, eventCost)
	}
}

// The unread requests that a listener keeps. The default is the kernel's limit (net.rdma_ucm.max_backlog). A guest
// that requests more and has the memory gets up to soft's limit.
const (
	defaultBacklog = 1024
	maxBacklog     = 1 << 16
)

// listen charges the guest for all requests that its peers may make it keep. So none of them can use up what it needs
// for something else. The system's maximum is at most what the guest has room for.
func (i *Instance) listen(handle Handle, backlog uint32) int32 {
	if backlog == 0 {
		backlog = uint32(max(1, min(defaultBacklog, i.budget.left()/2/backlogCost(1).Memory)))
	}
	backlog = min(backlog, maxBacklog)
	return i.onID(handle, func(id *rdmacore.ID) error {
		ep, _ := i.endpoints.get(handle)
		if err := i.mayBind(id.LocalAddr()); err != nil {
			i.cannotListen(id.LocalAddr(), err)
			return err
		}
		more := backlogCost(max(backlog, ep.backlog) - ep.backlog)
		if err := charge(i, &i.endpoints, handle, more); err != nil {
			return err
		}
		if err := id.Listen(int(backlog)); err != nil {
			credit(i, &i.endpoints, handle, more)
			i.cannotListen(id.LocalAddr(), err)
			return err
		}
		i.listensNow(ep)
		ep.backlog = max(backlog, ep.backlog)
		return nil
	})
}

func (i *Instance) connect(handle Handle, at Pointer) int32 {
	return i.withParam(handle, at, func(id *rdmacore.ID, param *rdmacore.ConnParam) error {
		if to := id.PeerAddr(); to.IsValid() { // which resolve_addrinfo may have found
			if err := i.mayConnect(to); err != nil {
				return err
			}
		}
		return id.Connect(param)
	})
}

func (i *Instance) accept(handle Handle, at Pointer) int32 {
	return i.withParam(handle, at, (*rdmacore.ID).Accept)
}

func (i *Instance) withParam(handle Handle, at Pointer, call func(*rdmacore.ID, *rdmacore.ConnParam) error) int32 {
	param, failed := i.connParam(at)
	if failed != 0 {
		return failed
	}
	return i.start(handle, func(id *rdmacore.ID) error {
		if id.QP() == nil && !i.mayName(id, param) {
			return &refusal{
				syscall.EINVAL, "the endpoint has no QP, and qp_num is not the number of one of this guest's",
			}
		}
		return call(id, param)
	})
}

// mayName reports whether an endpoint without a QP may be connected with the number in param. A second connection for
// the same QP means that the peer has lost the first one. The connection manager then disconnects it (IBTA 12.4.1). So
// the number must be that of a QP of this guest. Datagrams have no connections and need no number.
func (i *Instance) mayName(id *rdmacore.ID, param *rdmacore.ConnParam) bool {
	if param == nil || param.QPNum == 0 {
		return id.PortSpace() != rdmacore.PortSpaceTCP
	}
	own := false
	i.qps.all(func(_ Handle, qp *rdmacore.QP) bool {
		own = qp.Num() == param.QPNum
		return !own
	})
	return own
}

func (i *Instance) establish(handle Handle) int32 {
	return i.start(handle, (*rdmacore.ID).Establish)
}

func (i *Instance) reject(handle Handle, privateData Pointer, length uint32) int32 {
	private, wrong := i.bytes(privateData, length)
	if wrong != 0 {
		return i.badPointer("private_data", wrong)
	}
	return i.onID(handle, func(id *rdmacore.ID) error { return id.Reject(private) })
}

func (i *Instance) disconnect(handle Handle) int32 {
	return i.start(handle, (*rdmacore.ID).Disconnect)
}
