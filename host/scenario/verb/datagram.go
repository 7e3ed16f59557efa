package verb

import (
	"rdmarun/rdmacore"
)

// datagramArguments are those of post_send that address a datagram.
func datagramArguments() []Argument {
	return []Argument{
		{Name: "ah", Type: Handle, Doc: "datagrams: where to, an address handle of create_ah"},
		{Name: "remote_qpn", Type: Integer, Max: 1<<24 - 1, Doc: "datagrams: number of the queue pair there, 0xffffff for a group"},
		{Name: "remote_qkey", Type: Integer, Max: 1<<32 - 1, Doc: "datagrams: its key; without it that of rdma_cm's datagram ids, with the highest bit set the own queue pair's"},
	}
}

// checkSend looks at what goes together in a SEND.
func checkSend(call *Call) *Refusal {
	for _, name := range []string{"remote_qpn", "remote_qkey"} {
		if call.Has(name) && !call.Has("ah") {
			return &Refusal{Argument: name, Message: "is for datagrams", Hint: "ah says where they go"}
		}
	}
	switch {
	case call.Has("ah") && !call.Has("remote_qpn"):
		return &Refusal{Argument: "ah", Message: "a datagram goes to a queue pair, whose number is missing", Hint: "remote_qpn says it; an event and query_qp tell it"}
	case call.Has("imm") && call.Has("invalidate"):
		return &Refusal{Argument: "invalidate", Message: "a message carries immediate data or a key to invalidate, not both"}
	case call.Has("ah") && call.Has("invalidate"):
		return &Refusal{Argument: "invalidate", Message: "a datagram invalidates nothing"}
	}
	return nil
}

// address gives a request the destination of a datagram, if the step names one.
func address(call *Call, request *rdmacore.SendWR) error {
	if !call.Has("ah") {
		return nil
	}
	handle, err := call.Role.Handle(call.Text("ah"))
	if err != nil {
		return err
	}
	request.AH, request.RemoteQPN, request.RemoteQKey = handle.Native().Number(), uint32(call.Integer("remote_qpn")), rdmacore.UDPQKey
	if call.Has("remote_qkey") {
		request.RemoteQKey = uint32(call.Integer("remote_qkey"))
	}
	return nil
}
