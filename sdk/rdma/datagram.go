package rdma

import (
	"net/netip"
	"unsafe"
)

// GRHSize is how much of a datagram's receive is the header of the network, in front of the message.
const GRHSize = 40

// UDPQKey is the queue key of QPs that endpoints of port space UDP have.
const UDPQKey = 0x01234567

// AddressHandle says where datagrams go: a SendWR names it by its Number.
type AddressHandle struct {
	Handle Handle
	AH
}

// CreateAH makes an address handle of what an ESTABLISHED or MULTICAST_JOIN has in its AH, for example.
func (pd *PD) CreateAH(attr AHAttr) (*AddressHandle, error) {
	ah := &AddressHandle{}
	return ah.made(handle("create_ah", abiCreateAH(pd.Handle, &attr, &ah.AH)))
}

// CreateAHFromWC creates the address handle for an answer to a datagram's sender, the QP wc.SrcQP. The receive's
// buffer is received. It begins with the header of GRHSize bytes.
func (pd *PD) CreateAHFromWC(wc WC, received []byte) (*AddressHandle, error) {
	ah := &AddressHandle{}
	header, err := grh("create_ah_from_wc", received)
	if err != nil {
		return nil, err
	}
	return ah.made(handle("create_ah_from_wc", abiCreateAHFromWC(pd.Handle, &wc, header, &ah.AH)))
}

func (ah *AddressHandle) made(h Handle, err error) (*AddressHandle, error) {
	if err != nil {
		return nil, err
	}
	ah.Handle = h
	return ah, nil
}

// InitAHFromWC finds the way back to a datagram's sender, of which CreateAH makes a handle.
func (d *Device) InitAHFromWC(wc WC, received []byte) (AHAttr, error) {
	var attr AHAttr
	header, err := grh("init_ah_from_wc", received)
	if err != nil {
		return attr, err
	}
	err = check("init_ah_from_wc", abiInitAHFromWC(d.Handle, &wc, header, &attr))
	return attr, err
}

func grh(function string, received []byte) (unsafe.Pointer, error) {
	if len(received) < GRHSize {
		return nil, &Error{
			Function: function, Errno: EINVAL,
			Text: "pass the receive's buffer from its first byte: a datagram's begins with a header of 40 bytes",
		}
	}
	return unsafe.Pointer(unsafe.SliceData(received)), nil
}

// Destroy destroys the address handle.
func (ah *AddressHandle) Destroy() error { return check("destroy_ah", abiDestroyAH(ah.Handle)) }

// AttachMcast lets the QP receive what is sent to a group; JoinMulticast does so by itself.  lid is the group's in
// InfiniBand, else 0.
func (q *QP) AttachMcast(group netip.Addr, lid uint16) error {
	address := AddressFrom(netip.AddrPortFrom(group, 0))
	return check("attach_mcast", abiAttachMcast(q.Handle, &address, uint32(lid)))
}

// DetachMcast ends AttachMcast.
func (q *QP) DetachMcast(group netip.Addr, lid uint16) error {
	address := AddressFrom(netip.AddrPortFrom(group, 0))
	return check("detach_mcast", abiDetachMcast(q.Handle, &address, uint32(lid)))
}
