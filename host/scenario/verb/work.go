package verb

import (
	"context"

	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// workVerbs post work requests.
func workVerbs() []Verb {
	return []Verb{
		define(Verb{
			Name: "post_recv", Manual: "ibv_post_recv(3)",
			Doc: "Post a receive.  Do it before the peer can send: a send that finds none is repeated only after 655.36ms.",
		}, postRecv),
		define(Verb{
			Name: "post_srq_recv", Manual: "ibv_post_srq_recv(3)", Capability: CanShare,
			Doc: "Post a receive to a shared receive queue, for whichever of its queue pairs gets the next message.",
		}, postSRQRecv),
		define(Verb{
			Name: "post_send", Manual: "ibv_post_send(3)",
			Doc: "Post a SEND; it takes a receive of the peer.",
		}, postSend),
		define(Verb{
			Name: "post_write", Manual: "ibv_post_send(3)",
			Doc: "Post an RDMA WRITE to the peer's memory, which must allow REMOTE_WRITE.",
		}, postWrite),
		define(Verb{
			Name: "post_read", Manual: "ibv_post_send(3)",
			Doc: "Post an RDMA READ of the peer's memory, which must allow REMOTE_READ, into a buffer with LOCAL_WRITE.",
		}, postRead),
	}
}

// wrID is the number of a work request.
type wrID struct {
	WRID uint64 `arg:"wr_id" default:"0" doc:"comes back in the completion"`
}

// requestFlags are flags of every send request, dataFlags those of requests that carry data.
type (
	requestFlags struct {
		Signaled bool `arg:"signaled" doc:"make a completion, also when the queue pair has not sig_all"`
		Fence    bool `arg:"fence" doc:"wait for the READs and atomics before"`
	}
	dataFlags struct {
		requestFlags
		Inline bool `arg:"inline" doc:"copy the data at once (max_inline_data)"`
	}
	solicited struct {
		Solicited bool `arg:"solicited" doc:"wake a peer that waits for solicited completions"`
	}
)

func (f requestFlags) native() rdmacore.SendFlags { return dataFlags{requestFlags: f}.native(false) }

func (f dataFlags) native(solicited bool) (flags rdmacore.SendFlags) {
	for _, each := range []struct {
		given bool
		flag  rdmacore.SendFlags
	}{
		{f.Signaled, rdmacore.SendSignaled}, {f.Fence, rdmacore.SendFence}, {f.Inline, rdmacore.SendInline}, {solicited, rdmacore.SendSolicited},
	} {
		if each.given {
			flags |= each.flag
		}
	}
	return flags
}

// entries is where the data of a request is, when it is in several places.
type entries struct {
	SGEs Optional[[]entry] `arg:"sges" group:"buffer or sges" doc:"instead of buffer, several parts of buffers in their order: [{buffer: head, length: 16}, {buffer: tail, offset: 8}]; as many as the queue pair has max_send_sge or max_recv_sge"`
}

// bufferPart is where in its buffer the data of a request is; remotePart is that of a request whose peer's memory has a length,
// too.
type (
	bufferPart struct {
		Offset Optional[byteCount] `arg:"offset" default:"0" doc:"where in the buffer"`
		Length Optional[byteCount] `arg:"length" doc:"how many bytes; without it, to the end of the buffer"`
		wrID
	}
	remotePart struct {
		Offset Optional[byteCount] `arg:"offset" default:"0" doc:"where in the buffer"`
		Length Optional[byteCount] `arg:"length" doc:"how many bytes; without it, what the local buffer and, where it is known, the remote memory have"`
		wrID
	}
)

// immediateData is what a receive of the peer completes with.
type immediateData struct {
	Imm Optional[uint32] `arg:"imm" doc:"immediate data: the peer's receive completes with it"`
}

// posted is the result of a request with data.
type posted struct {
	Length int `result:"length" doc:"bytes posted"`
}

type postRecvArguments struct {
	onlyEndpoint
	Buffer *testbed.Buffer `arg:"buffer" group:"buffer or sges" doc:"where the message goes (LOCAL_WRITE)"`
	entries
	bufferPart
}

func (a *postRecvArguments) check() *Refusal { return checkEntries(a.SGEs, a.Offset, a.Length) }

func postRecv(_ context.Context, _ *Call, args *postRecvArguments) (posted, error) {
	post, err := receivePoster(args.EP)
	if err != nil {
		return posted{}, err
	}
	return postReceive(post, args.SGEs.Value, args.Buffer, args.bufferPart)
}

type postSRQRecvArguments struct {
	theSharedQueue
	Buffer *testbed.Buffer `arg:"buffer" group:"buffer or sges" doc:"where the message goes (LOCAL_WRITE)"`
	entries
	bufferPart
}

func (a *postSRQRecvArguments) check() *Refusal { return checkEntries(a.SGEs, a.Offset, a.Length) }

func postSRQRecv(_ context.Context, _ *Call, args *postSRQRecvArguments) (posted, error) {
	return postReceive(args.SRQ.Native().PostRecv, args.SGEs.Value, args.Buffer, args.bufferPart)
}

// poster posts receives, to a queue pair or to a shared queue.
type poster func([]rdmacore.RecvWR, []rdmacore.SGE) (int, error)

// receivePoster posts to the shared queue of an endpoint, where it has one, as rdma_post_recv(3) does.
func receivePoster(endpoint *testbed.Endpoint) (poster, error) {
	if shared := endpoint.ID().SRQ(); shared != nil {
		return shared.PostRecv, nil
	}
	qp, err := endpoint.QP()
	if err != nil {
		return nil, err
	}
	return qp.PostRecv, nil
}

func postReceive(post poster, list []entry, buffer *testbed.Buffer, part bufferPart) (posted, error) {
	sges, length, err := sgesOf(list, buffer, part.Offset.Value, part.Length, -1)
	if err != nil {
		return posted{}, err
	}
	_, err = post([]rdmacore.RecvWR{{WRID: part.WRID, NumSGE: uint32(len(sges))}}, sges)
	return posted{length}, err
}

type postSendArguments struct {
	onlyEndpoint
	Buffer *testbed.Buffer `arg:"buffer" group:"buffer or sges" doc:"the message"`
	entries
	bufferPart
	immediateData
	Invalidate Optional[uint32] `arg:"invalidate" doc:"a key of the peer that ends with the message"`
	solicited
	datagram
	dataFlags
}

func (a *postSendArguments) request() *sendRequest {
	return &sendRequest{
		operation: rdmacore.OpSend, list: a.SGEs, buffer: a.Buffer, part: a.bufferPart, imm: a.Imm, invalidate: a.Invalidate,
		datagram: a.datagram, flags: a.native(a.Solicited),
	}
}

func (a *postSendArguments) check() *Refusal { return a.request().check() }

func postSend(_ context.Context, call *Call, args *postSendArguments) (posted, error) {
	return args.request().post(call, args.EP)
}

type postWriteArguments struct {
	onlyEndpoint
	Buffer *testbed.Buffer `arg:"buffer" group:"buffer or sges" doc:"own buffer"`
	entries
	To RemoteMemory `arg:"to,required" doc:"the peer's memory"`
	remotePart
	immediateData
	dataFlags
}

func (a *postWriteArguments) request() *sendRequest {
	return &sendRequest{
		operation: rdmacore.OpRDMAWrite, list: a.SGEs, buffer: a.Buffer, part: bufferPart(a.remotePart), remote: a.To, imm: a.Imm,
		flags: a.native(false),
	}
}

func (a *postWriteArguments) check() *Refusal { return a.request().check() }

func postWrite(_ context.Context, call *Call, args *postWriteArguments) (posted, error) {
	return args.request().post(call, args.EP)
}

type postReadArguments struct {
	onlyEndpoint
	Buffer *testbed.Buffer `arg:"buffer" group:"buffer or sges" doc:"own buffer"`
	entries
	From RemoteMemory `arg:"from,required" doc:"the peer's memory"`
	remotePart
	requestFlags
}

func (a *postReadArguments) request() *sendRequest {
	return &sendRequest{
		operation: rdmacore.OpRDMARead, list: a.SGEs, buffer: a.Buffer, part: bufferPart(a.remotePart), remote: a.From, flags: a.native(),
	}
}

func (a *postReadArguments) check() *Refusal { return a.request().check() }

func postRead(_ context.Context, call *Call, args *postReadArguments) (posted, error) {
	return args.request().post(call, args.EP)
}

// sendRequest is a SEND, an RDMA_WRITE or an RDMA_READ as steps describe it.
type sendRequest struct {
	operation       rdmacore.Opcode // without what it carries: immediate data, a key to invalidate
	list            Optional[[]entry]
	buffer          *testbed.Buffer
	part            bufferPart
	remote          RemoteMemory // of RDMA operations
	imm, invalidate Optional[uint32]
	datagram        datagram
	flags           rdmacore.SendFlags
}

// check looks at what goes together.
func (r *sendRequest) check() *Refusal {
	switch {
	case r.datagram.AH.Given && !r.datagram.RemoteQPN.Given:
		return &Refusal{Argument: "ah", Message: "a datagram goes to a queue pair, whose number is missing", Hint: "remote_qpn says it; an event and query_qp tell it"}
	case r.imm.Given && r.invalidate.Given:
		return &Refusal{Argument: "invalidate", Message: "a message carries immediate data or a key to invalidate, not both"}
	case r.datagram.AH.Given && r.invalidate.Given:
		return &Refusal{Argument: "invalidate", Message: "a datagram invalidates nothing"}
	}
	return checkEntries(r.list, r.part.Offset, r.part.Length)
}

// native is the request for the core, its scatter/gather entries and their bytes.
func (r *sendRequest) native(call *Call, endpoint *testbed.Endpoint, qp *rdmacore.QP) (request rdmacore.SendWR, sges []rdmacore.SGE, length int, err error) {
	request = rdmacore.SendWR{WRID: r.part.WRID, Opcode: r.operation, Flags: r.flags}
	if r.imm.Given {
		request.Opcode, request.ImmData = rdmacore.OpRDMAWriteWithImm, wireOrder(r.imm.Value)
		if r.operation == rdmacore.OpSend {
			request.Opcode = rdmacore.OpSendWithImm
		}
	}
	if r.invalidate.Given {
		request.Opcode, request.ImmData = rdmacore.OpSendWithInv, r.invalidate.Value
	}
	if err := r.datagram.address(call, endpoint, qp, &request); err != nil {
		return request, nil, 0, err
	}
	most := -1
	if r.operation != rdmacore.OpSend {
		request.RemoteAddress, request.RKey, most = r.remote.Address, r.remote.RKey, r.remote.Length
	}
	sges, length, err = sgesOf(r.list.Value, r.buffer, r.part.Offset.Value, r.part.Length, most)
	request.NumSGE = uint32(len(sges))
	return request, sges, length, err
}

func (r *sendRequest) post(call *Call, endpoint *testbed.Endpoint) (posted, error) {
	qp, err := endpoint.QP()
	if err != nil {
		return posted{}, err
	}
	request, sges, length, err := r.native(call, endpoint, qp)
	if err != nil {
		return posted{}, err
	}
	return posted{length}, postOne(call, endpoint, r.operation, request, sges, length)
}

// postOne posts a request; length is what it moves, for the records.
func postOne(call *Call, endpoint *testbed.Endpoint, operation rdmacore.Opcode, request rdmacore.SendWR, sges []rdmacore.SGE, length int) error {
	qp, err := endpoint.QP()
	if err != nil {
		return err
	}
	if _, err := qp.PostSend([]rdmacore.SendWR{request}, sges); err != nil {
		return err
	}
	notePosted(call, endpoint, operation, request.Flags, length)
	return nil
}

// notePosted counts a request that was posted, and whether it has a completion to come.
func notePosted(call *Call, endpoint *testbed.Endpoint, operation rdmacore.Opcode, flags rdmacore.SendFlags, length int) {
	if flags&rdmacore.SendSignaled == 0 && !endpoint.ID().QP().InitAttr().SignalAll {
		endpoint.Unsignaled++
	}
	call.Testbed.Posted(operation, length)
}
