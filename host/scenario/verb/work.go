package verb

import (
	"context"
	"encoding/binary"
	"slices"

	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

// workVerbs post work requests.
func workVerbs() []Verb {
	endpoint := Argument{Name: "ep", Type: Endpoint, Doc: "the endpoint; without it the role's only one"}
	offset := Argument{Name: "offset", Type: Size, Default: 0, Doc: "where in the buffer"}
	length := Argument{Name: "length", Type: Size, Doc: "how many bytes; without it, to the end of the buffer"}
	wrID := Argument{Name: "wr_id", Type: Unsigned, Default: uint64(0), Doc: "comes back in the completion"}
	flags := sendFlagArguments()
	solicited := Argument{Name: "solicited", Type: Boolean, Doc: "wake a peer that waits for solicited completions"}
	local := Argument{Name: "buffer", Type: Buffer, Required: true, Doc: "own buffer"}
	gathered, sges := Argument{Name: "buffer", Type: Buffer, Group: bufferOrList, Doc: "own buffer"}, sgesArgument()
	shorter := Argument{Name: "length", Type: Size, Doc: "how many bytes; without it, what the local buffer and, where it is known, the remote memory have"}
	immediate := Argument{Name: "imm", Type: Integer, Max: 1<<32 - 1, Doc: "immediate data: the peer's receive completes with it"}
	result := []Result{{Name: "length", Type: Integer, Doc: "bytes posted"}}
	return []Verb{
		{
			Name: "post_recv", Manual: "ibv_post_recv(3)", Run: postRecv, Results: result, Check: checkEntries,
			Doc: "Post a receive.  Do it before the peer can send: a send that finds none is repeated only after 655.36ms.",
			Arguments: []Argument{endpoint,
				{Name: "buffer", Type: Buffer, Group: bufferOrList, Doc: "where the message goes (LOCAL_WRITE)"}, sges, offset, length, wrID},
		},
		{
			Name: "post_send", Manual: "ibv_post_send(3)", Results: result, Check: checkSend,
			Run: func(_ context.Context, call *Call) (Outcome, error) { return postSend(call, rdmacore.OpSend) },
			Doc: "Post a SEND; it takes a receive of the peer.",
			Arguments: slices.Concat([]Argument{endpoint, {Name: "buffer", Type: Buffer, Group: bufferOrList, Doc: "the message"}, sges, offset, length, wrID, immediate,
				{Name: "invalidate", Type: Integer, Max: 1<<32 - 1, Doc: "a key of the peer that ends with the message"}, solicited}, datagramArguments(), flags),
		},
		postSRQRecvVerb(sges, offset, length, wrID, result),
		postLocalInvVerb(endpoint, wrID, flags[:2]),
		postAtomicVerb(endpoint, local, wrID, flags[:2]),
		postAtomicWriteVerb(endpoint, local, wrID, flags[:2]),
		postFlushVerb(endpoint, wrID, flags[:2]),
		{
			Name: "post_write", Manual: "ibv_post_send(3)", Results: result, Check: checkEntries,
			Run: func(_ context.Context, call *Call) (Outcome, error) { return postSend(call, rdmacore.OpRDMAWrite) },
			Doc: "Post an RDMA WRITE to the peer's memory, which must allow REMOTE_WRITE.",
			Arguments: append([]Argument{endpoint, gathered, sges,
				{Name: "to", Type: Remote, Required: true, Doc: "the peer's memory"}, offset, shorter, wrID, immediate}, flags...),
		},
		{
			Name: "post_read", Manual: "ibv_post_send(3)", Results: result, Check: checkEntries,
			Run: func(_ context.Context, call *Call) (Outcome, error) { return postSend(call, rdmacore.OpRDMARead) },
			Doc: "Post an RDMA READ of the peer's memory, which must allow REMOTE_READ, into a buffer with LOCAL_WRITE.",
			Arguments: append([]Argument{endpoint, gathered, sges,
				{Name: "from", Type: Remote, Required: true, Doc: "the peer's memory"}, offset, shorter, wrID}, flags[:2]...),
		},
	}
}

// sendFlagArguments are the flags of a send request, those of data first.
func sendFlagArguments() []Argument {
	return []Argument{
		{Name: "signaled", Type: Boolean, Doc: "make a completion, also when the queue pair has not sig_all"},
		{Name: "fence", Type: Boolean, Doc: "wait for the READs and atomics before"},
		{Name: "inline", Type: Boolean, Doc: "copy the data at once (max_inline_data)"},
	}
}

func postRecv(_ context.Context, call *Call) (Outcome, error) {
	post, err := receivePoster(call)
	if err != nil {
		return Outcome{}, err
	}
	return postReceive(call, post)
}

// receivePoster posts to the shared queue of the step's endpoint, where it has one, as rdma_post_recv(3) does.
func receivePoster(call *Call) (func([]rdmacore.RecvWR, []rdmacore.SGE) (int, error), error) {
	endpoint, err := call.Endpoint("ep")
	if err != nil {
		return nil, err
	}
	if shared := endpoint.ID().SRQ(); shared != nil {
		return shared.PostRecv, nil
	}
	qp, err := endpoint.QP()
	if err != nil {
		return nil, err
	}
	return qp.PostRecv, nil
}

func postReceive(call *Call, post func([]rdmacore.RecvWR, []rdmacore.SGE) (int, error)) (Outcome, error) {
	sges, length, err := entriesOf(call, -1)
	if err != nil {
		return Outcome{}, err
	}
	request := [1]rdmacore.RecvWR{{WRID: call.Unsigned("wr_id"), NumSGE: uint32(len(sges))}}
	_, err = post(request[:], sges)
	return Outcome{Fields: []any{length}}, err
}

func queuePair(call *Call) (*rdmacore.QP, *lab.Endpoint, error) {
	endpoint, err := call.Endpoint("ep")
	if err != nil {
		return nil, nil, err
	}
	qp, err := endpoint.QP()
	return qp, endpoint, err
}

func postSend(call *Call, opcode rdmacore.Opcode) (Outcome, error) {
	qp, endpoint, err := queuePair(call)
	if err != nil {
		return Outcome{}, err
	}
	request, sges, length, err := sendRequest(call, endpoint, qp, opcode)
	if err != nil {
		return Outcome{}, err
	}
	requests := [1]rdmacore.SendWR{request}
	if _, err := qp.PostSend(requests[:], sges); err != nil {
		return Outcome{}, err
	}
	noteUnsignaled(qp, endpoint, request.Flags)
	call.Lab.Posted(opcode, length)
	return Outcome{Fields: []any{length}}, nil
}

// sendRequest is the request that the arguments describe, its scatter/gather entries and their bytes.
func sendRequest(call *Call, endpoint *lab.Endpoint, qp *rdmacore.QP, opcode rdmacore.Opcode) (request rdmacore.SendWR, sges []rdmacore.SGE, length int, err error) {
	request = rdmacore.SendWR{WRID: call.Unsigned("wr_id"), Opcode: opcode, Flags: sendFlags(call)}
	if call.Has("imm") {
		request.Opcode = withImmediate(opcode)
		request.ImmData = binary.BigEndian.Uint32(binary.NativeEndian.AppendUint32(nil, uint32(call.Integer("imm"))))
	}
	if call.Has("invalidate") {
		request.Opcode, request.ImmData = rdmacore.OpSendWithInv, uint32(call.Integer("invalidate"))
	}
	if err := address(call, endpoint, qp, &request); err != nil {
		return request, nil, 0, err
	}
	most := -1
	if opcode != rdmacore.OpSend {
		remote := remoteOf(call)
		request.RemoteAddress, request.RKey, most = remote.Address, remote.RKey, remote.Length
	}
	sges, length, err = entriesOf(call, most)
	request.NumSGE = uint32(len(sges))
	return request, sges, length, err
}

// noteUnsignaled counts a request without a completion to come.
func noteUnsignaled(qp *rdmacore.QP, endpoint *lab.Endpoint, flags rdmacore.SendFlags) {
	if flags&rdmacore.SendSignaled == 0 && !qp.InitAttr().SignalAll {
		endpoint.Unsignaled++
	}
}

func withImmediate(opcode rdmacore.Opcode) rdmacore.Opcode {
	if opcode == rdmacore.OpSend {
		return rdmacore.OpSendWithImm
	}
	return rdmacore.OpRDMAWriteWithImm
}

func remoteOf(call *Call) RemoteMemory {
	remote, ok := call.argument("to").(RemoteMemory)
	if !ok {
		remote, _ = call.argument("from").(RemoteMemory)
	}
	return remote
}

func sendFlags(call *Call) rdmacore.SendFlags {
	var flags rdmacore.SendFlags
	if call.Boolean("signaled") {
		flags |= rdmacore.SendSignaled
	}
	if call.Boolean("fence") {
		flags |= rdmacore.SendFence
	}
	if call.Boolean("inline") {
		flags |= rdmacore.SendInline
	}
	if call.Boolean("solicited") {
		flags |= rdmacore.SendSolicited
	}
	return flags
}
