package rdma

import (
	"net/netip"
	"time"
	"unsafe"
)

// EP is an endpoint: an rdma_cm id with, mostly, a QP.
type EP struct {
	Handle  Handle
	Channel *EventChannel
	QP      *QP // nil without one
	SendCQ  *CQ // of the QP
	RecvCQ  *CQ
}

// newEP finds what hangs on an endpoint.
func newEP(channel *EventChannel, h Handle) (*EP, error) {
	ep := &EP{Handle: h, Channel: channel}
	qp, err := handle("ep_qp", abiEPQP(h))
	if err == nil {
		err = ep.adopt(qp)
	} else if err.(*Error).Errno == ENOENT {
		err = nil
	}
	return ep, err
}

func (ep *EP) adopt(qp Handle) error {
	send, err := handle("ep_send_cq", abiEPSendCQ(ep.Handle))
	if err != nil {
		return err
	}
	recv, err := handle("ep_recv_cq", abiEPRecvCQ(ep.Handle))
	if err != nil {
		return err
	}
	ep.QP, ep.SendCQ, ep.RecvCQ = &QP{qp}, &CQ{send}, &CQ{recv}
	return nil
}

// CreateQP gives the endpoint a QP when it was made without.
func (ep *EP) CreateQP(pd *PD, attr *QPInitAttr) error {
	qp, err := handle("create_qp", abiCreateQP(ep.Handle, pd.handle(), attr.sized()))
	if err != nil {
		return err
	}
	return ep.adopt(qp)
}

// CreateQPEx is CreateQP with extended attributes; for a QP without an endpoint, PD.CreateQPEx.
func (ep *EP) CreateQPEx(pd *PD, attr *QPInitAttr, extra QPExtra) error {
	extra.StructSize = uint32(unsafe.Sizeof(extra))
	qp, err := handle("create_qp_ex", abiCreateQPEx(ep.Handle, pd.handle(), attr.sized(), &extra))
	if err != nil {
		return err
	}
	return ep.adopt(qp)
}

// InitQPAttr returns what the connection manager would set to bring a QP of this connection to a state, and the mask
// for QP.Modify.
func (ep *EP) InitQPAttr(state QPState) (attr QPAttr, mask uint32, err error) {
	attr.StructSize = uint32(unsafe.Sizeof(attr))
	result := abiInitQPAttr(ep.Handle, state, &attr)
	return attr, uint32(max(result, 0)), check("init_qp_attr", result)
}

// Device is the endpoint's device.
func (ep *EP) Device() *Device { return &Device{ep.Handle} }

// Destroy destroys the endpoint with its QP and the CQs made with it.
func (ep *EP) Destroy() error { return check("destroy_ep", abiDestroyEP(ep.Handle)) }

// Listen begins to listen; 0 is the system's longest backlog.
func (ep *EP) Listen(backlog int) error {
	return check("listen", abiListen(ep.Handle, uint32(backlog)))
}

// Connect asks the peer for a connection; an event answers.  nil is the most the device can do.
func (ep *EP) Connect(param *ConnParam) error {
	return check("connect", abiConnect(ep.Handle, param.sized()))
}

// Accept accepts the request that made this endpoint; ESTABLISHED follows.  nil takes what was offered.
func (ep *EP) Accept(param *ConnParam) error {
	return check("accept", abiAccept(ep.Handle, param.sized()))
}

// Establish completes a connection after CONNECT_RESPONSE, for endpoints without a QP.
func (ep *EP) Establish() error { return check("establish", abiEstablish(ep.Handle)) }

// Reject rejects the request that made this endpoint.
func (ep *EP) Reject(privateData []byte) error {
	data := unsafe.Pointer(unsafe.SliceData(privateData))
	return check("reject", abiReject(ep.Handle, data, uint32(len(privateData))))
}

// Disconnect ends the connection; both sides get DISCONNECTED.
func (ep *EP) Disconnect() error { return check("disconnect", abiDisconnect(ep.Handle)) }

// Notify passes an asynchronous event of the endpoint's QP to the connection manager: AsyncCommEst, data before the
// peer's last message, brings ESTABLISHED.
func (ep *EP) Notify(event AsyncEventType) error {
	return check("notify", abiNotify(ep.Handle, uint32(event)))
}

// WriteEvent raises a USER event of the endpoint, with a status and a number of the caller's choice.
func (ep *EP) WriteEvent(status, arg int64) error {
	return check("write_event", abiWriteEvent(ep.Handle, status, arg))
}

// WaitEvent waits for the endpoint's next event.
func (ep *EP) WaitEvent(timeout time.Duration) (*Event, error) {
	return ep.Channel.WaitEvent(ep, timeout)
}

// Expect waits for the endpoint's next event and makes any but the wanted one an *EventError.
func (ep *EP) Expect(want EventType, timeout time.Duration) (*Event, error) {
	event, err := ep.WaitEvent(timeout)
	if err != nil {
		return nil, err
	}
	if event.CMEvent.Type != want || event.Status != 0 {
		return event, &EventError{Want: want, Got: event.CMEvent.Type, Status: int(event.Status)}
	}
	return event, nil
}

// LocalAddr is the endpoint's own address.
func (ep *EP) LocalAddr() (netip.AddrPort, error) {
	var address Address
	err := check("local_address", abiLocalAddress(ep.Handle, &address))
	return address.AddrPort(), err
}

// PeerAddr is the peer's address.
func (ep *EP) PeerAddr() (netip.AddrPort, error) {
	var address Address
	err := check("peer_address", abiPeerAddress(ep.Handle, &address))
	return address.AddrPort(), err
}

// SrcPort is the port of the endpoint's own address.
func (ep *EP) SrcPort() (uint16, error) {
	result := abiSrcPort(ep.Handle)
	return uint16(max(result, 0)), check("src_port", result)
}

// DstPort is the port of the peer's address.
func (ep *EP) DstPort() (uint16, error) {
	result := abiDstPort(ep.Handle)
	return uint16(max(result, 0)), check("dst_port", result)
}

// SetPrivateData copies data into the parameters.
func (p *ConnParam) SetPrivateData(data []byte) {
	p.PrivateDataLen = uint8(copy(p.PrivateData[:255], data))
}

func (p *ConnParam) sized() *ConnParam {
	if p != nil {
		p.StructSize = uint32(unsafe.Sizeof(*p))
	}
	return p
}
