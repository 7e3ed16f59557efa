package hostfuncs

import "rdmarun/rdmacore"

func cmFunctions() []Function {
	ep := Param{"ep", HandleOf, "ep", ""}
	return []Function{
		{
			Name: "listen", Since: v1, Capability: CapabilityCM,
			Doc: "Begins to listen; requests arrive as CONNECT_REQUEST events (rdma_listen(3)).",
			Params: []Param{ep,
				{"backlog", U32, "", "requests kept until they are read; more are dropped silently. 0 for the system's maximum"}},
			Errors:  "EINVAL: not a bound, passive endpoint. EADDRINUSE: somebody listens there.",
			binding: bind2((*Instance).listen),
		},
		{
			Name: "connect", Since: v1, Capability: CapabilityCM,
			Doc: "Asks the destination for a connection and returns at once (rdma_connect(3)). The answer " +
				"is an event: ESTABLISHED (CONNECT_RESPONSE without a QP), REJECTED, UNREACHABLE or " +
				"CONNECT_ERROR.",
			Params: []Param{ep,
				{"param", In, "conn_param", "0 for the most the device can do and 7 retries of each kind"}},
			Errors:  "EINVAL: not a resolved endpoint, more than 56 bytes of private data, a depth beyond the device's.",
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
		return i.badHandle(KindEP)
	}
	return i.result(call(ep.id))
}

func (i *Instance) listen(handle Handle, backlog uint32) int32 {
	const most = 1<<31 - 1
	return i.onID(handle, func(id *rdmacore.ID) error { return id.Listen(int(min(backlog, most))) })
}

func (i *Instance) connect(handle Handle, at Pointer) int32 {
	return i.withParam(handle, at, (*rdmacore.ID).Connect)
}

func (i *Instance) accept(handle Handle, at Pointer) int32 {
	return i.withParam(handle, at, (*rdmacore.ID).Accept)
}

func (i *Instance) withParam(handle Handle, at Pointer, call func(*rdmacore.ID, *rdmacore.ConnParam) error) int32 {
	param, failed := i.connParam(at)
	if failed != 0 {
		return failed
	}
	return i.onID(handle, func(id *rdmacore.ID) error { return call(id, param) })
}

func (i *Instance) establish(handle Handle) int32 {
	return i.onID(handle, (*rdmacore.ID).Establish)
}

func (i *Instance) reject(handle Handle, privateData Pointer, length uint32) int32 {
	private, errno := i.bytes(privateData, length)
	if errno != 0 {
		return i.badPointer("private_data", errno)
	}
	return i.onID(handle, func(id *rdmacore.ID) error { return id.Reject(private) })
}

func (i *Instance) disconnect(handle Handle) int32 {
	return i.onID(handle, (*rdmacore.ID).Disconnect)
}
