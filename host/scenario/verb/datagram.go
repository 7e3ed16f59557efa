package verb

import (
	"syscall"

	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

// datagramArguments are those of post_send that address a datagram.
func datagramArguments() []Argument {
	return []Argument{
		{Name: "ah", Type: Handle, Doc: "datagrams: where to, an address handle of create_ah; without it to whom the endpoint's last event named"},
		{Name: "remote_qpn", Type: Integer, Max: 1<<24 - 1, Doc: "datagrams: number of the queue pair there, 0xffffff for a group; without ah, the event's"},
		{Name: "remote_qkey", Type: Integer, Max: 1<<32 - 1, Doc: "datagrams: its key, with the highest bit set the own queue pair's; without it the event's, or with ah that of rdma_cm's datagram ids"},
	}
}

// checkSend looks at what goes together in a SEND.
func checkSend(call *Call) *Refusal {
	switch {
	case call.Has("ah") && !call.Has("remote_qpn"):
		return &Refusal{Argument: "ah", Message: "a datagram goes to a queue pair, whose number is missing", Hint: "remote_qpn says it; an event and query_qp tell it"}
	case call.Has("imm") && call.Has("invalidate"):
		return &Refusal{Argument: "invalidate", Message: "a message carries immediate data or a key to invalidate, not both"}
	case call.Has("ah") && call.Has("invalidate"):
		return &Refusal{Argument: "invalidate", Message: "a datagram invalidates nothing"}
	}
	return checkEntries(call)
}

func isDatagrams(qp *rdmacore.QP) bool { return qp.InitAttr().Type == rdmacore.QPTypeUD }

// address fills in where a datagram goes: to the peer or the group that an event named, but for what the step
// says itself.  A request of a connection has no address.
func address(call *Call, endpoint *lab.Endpoint, qp *rdmacore.QP, request *rdmacore.SendWR) error {
	if !isDatagrams(qp) {
		return withoutAddress(call, endpoint)
	}
	if call.Has("ah") {
		handle, err := call.Role.Handle(call.Text("ah"))
		if err != nil {
			return err
		}
		request.AH, request.RemoteQKey = handle.Native().Number(), rdmacore.UDPQKey
	} else {
		peer := endpoint.Datagrams
		if peer == nil {
			return &lab.Failure{
				What:  "endpoint \"" + endpoint.Name + "\" does not know where its datagrams go",
				Hint:  "ESTABLISHED of a datagram service and MULTICAST_JOIN tell it; or create_ah makes an address for ah",
				Errno: syscall.EDESTADDRREQ,
			}
		}
		handle, err := endpoint.AddressHandle(call.Role.PD())
		if err != nil {
			return err
		}
		request.AH, request.RemoteQPN, request.RemoteQKey = handle.Number(), peer.QPNum, peer.QKey
	}
	if call.Has("remote_qpn") {
		request.RemoteQPN = uint32(call.Integer("remote_qpn"))
	}
	if call.Has("remote_qkey") {
		request.RemoteQKey = uint32(call.Integer("remote_qkey"))
	}
	return nil
}

// withoutAddress refuses the address of a message that has its way.
func withoutAddress(call *Call, endpoint *lab.Endpoint) error {
	for _, argument := range datagramArguments() {
		if call.Has(argument.Name) {
			return &lab.Failure{
				What:  argument.Name + " is for datagrams, and the queue pair of \"" + endpoint.Name + "\" is of a connection",
				Hint:  "qp: {type: UD} makes one for datagrams",
				Errno: syscall.EINVAL,
			}
		}
	}
	return nil
}
