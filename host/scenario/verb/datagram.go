package verb

import (
	"syscall"

	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

// address fills in where a datagram goes: to the peer or the group that an event named, but for what the step
// says itself.  A request of a connection has no address.
func address(call *Call, endpoint *lab.Endpoint, qp *rdmacore.QP, request *rdmacore.SendWR) error {
	if qp.InitAttr().Type != rdmacore.QPTypeUD {
		return nil
	}
	peer := endpoint.Datagrams
	if peer == nil {
		return &lab.Failure{
			What:  "endpoint \"" + endpoint.Name + "\" does not know where its datagrams go",
			Hint:  "ESTABLISHED of a datagram service and MULTICAST_JOIN tell it",
			Errno: syscall.EDESTADDRREQ,
		}
	}
	handle, err := endpoint.AddressHandle(call.Role.PD())
	if err != nil {
		return err
	}
	request.AH, request.RemoteQPN, request.RemoteQKey = handle.Number(), peer.QPNum, peer.QKey
	if call.Has("remote_qpn") {
		request.RemoteQPN = uint32(call.Integer("remote_qpn"))
	}
	if call.Has("qkey") {
		request.RemoteQKey = uint32(call.Integer("qkey"))
	}
	return nil
}
