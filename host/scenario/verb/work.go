package verb

import (
	"context"
	"fmt"

	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// post defines a verb that posts work requests; its results are for `expect` alone.
func post[A, R any](name, manual, doc string, run func(ctx context.Context, call *Call, args *A) (R, error)) Verb {
	return define(Verb{Name: name, Manual: manual, Doc: doc}, run)
}

// workVerbs post work requests.
var workVerbs = []Verb{
	post("post_recv", "ibv_post_recv(3)",
		"Post a receive.  Do it before the peer can send: a send that finds none is repeated only after 655.36ms.",
		func(_ context.Context, call *Call, args *struct {
			onlyEndpoint
			receiveData
		}) (posted, error) {
			receive, err := receivePoster(call, args.EP)
			if err != nil {
				return posted{}, err
			}
			return args.post(receive)
		}),
	post("post_srq_recv", "ibv_post_srq_recv(3)",
		"Post a receive to a shared receive queue, for whichever of its queue pairs gets the next message.",
		func(_ context.Context, call *Call, args *struct {
			theSharedQueue
			receiveData
		}) (posted, error) {
			return args.post(counting(call, args.SRQ.Native()))
		}).needing(CanShare),
	post("post_send", "ibv_post_send(3)", "Post a SEND; it takes a receive of the peer.",
		func(_ context.Context, call *Call, args *postSendArguments) (posted, error) {
			return args.request().post(call, &args.onlyQueuePair)
		}).sending(),
	post("post_write", "ibv_post_send(3)", "Post an RDMA WRITE to the peer's memory, which must allow REMOTE_WRITE.",
		func(_ context.Context, call *Call, args *postWriteArguments) (posted, error) {
			return args.request().post(call, &args.onlyQueuePair)
		}).sending(),
	post("post_read", "ibv_post_send(3)",
		"Post an RDMA READ of the peer's memory, which must allow REMOTE_READ, into a buffer with LOCAL_WRITE.",
		func(_ context.Context, call *Call, args *postReadArguments) (posted, error) {
			return args.request().post(call, &args.onlyQueuePair)
		}).outstanding(),
}

// wrID is the number of a work request.
type wrID struct {
	WRID uint64 `arg:"wr_id" default:"0" doc:"comes back in the completion"`
}

// requestFlags are flags of every send request, dataFlags those of requests that carry data.
type (
	requestFlags struct {
		Signaled bool `arg:"signaled" doc:"make a completion, even without sig_all"`
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

func (f requestFlags) native() rdmacore.SendFlags {
	return flag(f.Signaled, rdmacore.SendSignaled) | flag(f.Fence, rdmacore.SendFence)
}

func (f dataFlags) native() rdmacore.SendFlags {
	return f.requestFlags.native() | flag(f.Inline, rdmacore.SendInline)
}

// flag is a bit that is set or not.
func flag[T ~int | ~uint32](set bool, bit T) T {
	if set {
		return bit
	}
	return 0
}

// entry is a scatter/gather entry as steps write it.
type entry struct {
	Buffer *testbed.Buffer     `arg:"buffer,required" doc:"own buffer"`
	Offset byteCount           `arg:"offset" doc:"where in it; without it at its beginning"`
	Length optional[byteCount] `arg:"length" min:"1" max:"0xffffffff" doc:"how many bytes; without it, to the end of the buffer"`
}

// entries is where the data of a request is, when it is in several places.
type entries struct {
	SGEs optional[[]entry] `arg:"sges" group:"buffer or sges" doc:"instead of buffer, several parts of buffers in their order: [{buffer: head, length: 16}, {buffer: tail, offset: 8}]. The queue pair's max_send_sge or max_recv_sge limits them"`
}

// bufferPart is where in its buffer the data of a request is.  It is a remotePart where the peer's memory has a length,
// too.
type (
	bufferPart struct {
		Offset optional[byteCount] `arg:"offset" default:"0" doc:"where in the buffer"`
		Length optional[byteCount] `arg:"length" doc:"how many bytes; without it, to the end of the buffer"`
		wrID
	}
	remotePart struct {
		Offset optional[byteCount] `arg:"offset" default:"0" doc:"where in the buffer"`
		Length optional[byteCount] `arg:"length" doc:"how many bytes (default: all of the local buffer, and at most the size of the remote memory if that is known)"`
		wrID
	}
)

// requestData is where the data of a request is, as a list of requests has it; without any it has no bytes.
type requestData struct {
	Buffer optional[*testbed.Buffer] `arg:"buffer" doc:"own buffer; without it and sges the request has no bytes"`
	SGEs   optional[[]entry]         `arg:"sges" doc:"instead of buffer, several parts of buffers in their order: [{buffer: head, length: 16}, {buffer: tail, offset: 8}]. The queue pair's max_send_sge or max_recv_sge limits them"`
	bufferPart
}

// dataOf is the data of a single request, which must have a buffer or a list of parts.
func dataOf(buffer *testbed.Buffer, list entries, part bufferPart) requestData {
	return requestData{when(buffer != nil, buffer), list.SGEs, part}
}

// check rejects a part of a buffer next to a list with a part for each.
func (d requestData) check() *Refusal {
	refuse := func(name string) *Refusal {
		return &Refusal{
			Argument: name, Message: "each entry of sges has its own", Hint: "sges: [{buffer: NAME, " + name + ": ..}]",
		}
	}
	switch {
	case !d.SGEs.Given:
	case d.Buffer.Given:
		return &Refusal{Argument: "sges", Message: "a request has a buffer or a list of parts of buffers, not both"}
	case d.Length.Given:
		return refuse("length")
	case d.Offset.Given && (d.Offset.Deferred || d.Offset.Value != 0):
		return refuse("offset")
	}
	return nil
}

// sges are the scatter/gather entries with their bytes.  The part of a buffer that has no length of its own is no
// longer than most, unless that is negative.
func (d *requestData) sges(most int) (sges []rdmacore.SGE, bytes int, err error) {
	if d.Buffer.Value != nil {
		s, err := spanOf(d.Buffer.Value, d.Offset.Value, d.Length)
		if most >= 0 && !d.Length.Given {
			s.length = min(s.length, most)
		}
		return s.sges(), s.length, err
	}
	for i := range d.SGEs.Value {
		each := &d.SGEs.Value[i]
		s, err := spanOf(each.Buffer, each.Offset, each.Length)
		if err != nil {
			return nil, 0, err
		}
		sges, bytes = append(sges, s.sges()...), bytes+s.length
	}
	return sges, bytes, nil
}

// posted is the result of a request with data.
type posted struct {
	Length int `result:"length" doc:"bytes posted"`
}

// receiveData is where a receive puts its message.
type receiveData struct {
	Buffer *testbed.Buffer `arg:"buffer" group:"buffer or sges" doc:"where the message goes (LOCAL_WRITE)"`
	entries
	bufferPart
}

func (d *receiveData) check() *Refusal { return dataOf(d.Buffer, d.entries, d.bufferPart).check() }

func (d *receiveData) post(receive poster) (posted, error) {
	data := dataOf(d.Buffer, d.entries, d.bufferPart)
	sges, length, err := data.sges(-1)
	if err != nil {
		return posted{}, err
	}
	_, err = receive([]rdmacore.RecvWR{{WRID: d.WRID, NumSGE: uint32(len(sges))}}, sges)
	return posted{length}, err
}

// poster posts receives, to a queue pair or to a shared queue.
type poster func([]rdmacore.RecvWR, []rdmacore.SGE) (int, error)

// receivePoster posts to the shared queue of an endpoint, where it has one, as rdma_post_recv(3) does.
func receivePoster(call *Call, endpoint *testbed.Endpoint) (poster, error) {
	if shared := endpoint.ID().SRQ(); shared != nil {
		return counting(call, shared), nil
	}
	qp, err := endpoint.QP()
	if err != nil {
		return nil, err
	}
	return counting(call, qp), nil
}

// counting posts to a queue pair or to a shared queue, and has the testbed count what was posted.
func counting(call *Call, queue interface {
	PostRecv([]rdmacore.RecvWR, []rdmacore.SGE) (int, error)
}) poster {
	return func(requests []rdmacore.RecvWR, sges []rdmacore.SGE) (int, error) {
		posted, err := queue.PostRecv(requests, sges)
		call.Testbed.ReceivesPosted(queue, posted)
		return posted, err
	}
}

// immediateData is what a receive of the peer completes with.
type immediateData struct {
	Imm optional[uint32] `arg:"imm" doc:"immediate data: the peer's receive completes with it"`
}

type postSendArguments struct {
	onlyQueuePair
	Buffer *testbed.Buffer `arg:"buffer" group:"buffer or sges" doc:"the message"`
	entries
	bufferPart
	immediateData
	Invalidate optional[uint32] `arg:"invalidate" doc:"a key of the peer that ends with the message"`
	solicited
	datagram
	dataFlags
}

func (a *postSendArguments) request() *sendRequest {
	return &sendRequest{
		Op: rdmacore.OpSend, requestData: dataOf(a.Buffer, a.entries, a.bufferPart), Imm: a.Imm,
		Invalidate: a.Invalidate,
		solicited:  a.solicited, datagram: a.datagram, dataFlags: a.dataFlags,
	}
}

func (a *postSendArguments) check() *Refusal { return a.request().check() }

type postWriteArguments struct {
	onlyQueuePair
	Buffer *testbed.Buffer `arg:"buffer" group:"buffer or sges" doc:"own buffer"`
	entries
	To RemoteMemory `arg:"to,required" doc:"the peer's memory"`
	remotePart
	immediateData
	dataFlags
}

func (a *postWriteArguments) request() *sendRequest {
	data := dataOf(a.Buffer, a.entries, bufferPart(a.remotePart))
	return &sendRequest{Op: rdmacore.OpRDMAWrite, requestData: data, To: some(a.To), Imm: a.Imm, dataFlags: a.dataFlags}
}

func (a *postWriteArguments) check() *Refusal { return a.request().check() }

type postReadArguments struct {
	onlyQueuePair
	Buffer *testbed.Buffer `arg:"buffer" group:"buffer or sges" doc:"own buffer"`
	entries
	From RemoteMemory `arg:"from,required" doc:"the peer's memory"`
	remotePart
	requestFlags
}

func (a *postReadArguments) request() *sendRequest {
	data := dataOf(a.Buffer, a.entries, bufferPart(a.remotePart))
	return &sendRequest{
		Op: rdmacore.OpRDMARead, requestData: data, From: some(a.From),
		dataFlags: dataFlags{requestFlags: a.requestFlags},
	}
}

func (a *postReadArguments) check() *Refusal { return a.request().check() }

// post posts a request; operation is what it does without what it carries, and length what it moves, for the records.
func (q *onlyQueuePair) post(
	call *Call, operation rdmacore.Opcode, request rdmacore.SendWR, sges []rdmacore.SGE, length int,
) error {
	if _, err := q.qp.PostSend([]rdmacore.SendWR{request}, sges); err != nil {
		return err
	}
	q.posted(call, operation, request.Flags, length)
	return nil
}

// posted counts a request that was posted, and whether it has a completion to come.
func (q *onlyQueuePair) posted(call *Call, operation rdmacore.Opcode, flags rdmacore.SendFlags, length int) {
	if flags&rdmacore.SendSignaled == 0 && !q.qp.InitAttr().SignalAll {
		q.EP.Unsignaled++
	}
	call.Testbed.Posted(operation, length)
}

// atomicVerbs post requests about one word of the peer's memory, and FLUSH, which like ATOMIC_WRITE places data there
// and brings nothing back (IBTA annex A19).
var atomicVerbs = []Verb{
	act("post_atomic", "ibv_post_send(3)",
		"Post an atomic operation on 8 aligned bytes of the peer's memory, which must allow REMOTE_ATOMIC; the old "+
			"value comes into the local buffer.",
		postAtomic).outstanding(),
	act("post_atomic_write", "ibv_wr_post(3)",
		"Post a write of 8 bytes to an aligned word of the peer's memory, which must allow REMOTE_WRITE; no "+
			"reader sees half of it.",
		func(_ context.Context, call *Call, args *struct {
			remoteWord
			localWord
		}) error {
			return args.postWord(
				call, &args.localWord, rdmacore.SendWR{Opcode: rdmacore.OpAtomicWrite}, "8 bytes to write",
			)
		}).outstanding(),
	post("post_flush", "ibv_wr_post(3)",
		"Post a FLUSH: it completes when what was written before it to the peer's memory has been placed.  The "+
			"queue pair needs FLUSH among "+
			"its send_ops, the memory and the peer's queue pair (modify_qp) the right FLUSH_GLOBAL or "+
			"FLUSH_PERSISTENT.",
		postFlush).outstanding(),
}

// compareAndSwap is a word of `op`; the other is FETCH_AND_ADD.
const compareAndSwap = "CMP_AND_SWP"

// atomicBytes is the width of atomics (ibv_post_send(3)).
const atomicBytes = 8

// remoteWord is the word of the peer's memory that a request is about, localWord that of the own buffer.
type (
	remoteWord struct {
		onlyQueuePair
		Buffer *testbed.Buffer `arg:"buffer,required" doc:"own buffer"`
		To     RemoteMemory    `arg:"to,required" doc:"the peer's memory"`
	}
	localWord struct {
		Offset byteCount `arg:"offset" default:"0" doc:"where in the local buffer"`
		wrID
		requestFlags
	}
)

// postWord posts a request about the two words; lacks is what a buffer that is too short has no room for.
func (r *remoteWord) postWord(call *Call, local *localWord, request rdmacore.SendWR, lacks string) error {
	s, err := spanOf(r.Buffer, local.Offset, optional[byteCount]{})
	if err != nil {
		return err
	}
	if s.length < atomicBytes {
		return &testbed.Failure{
			What:     fmt.Sprintf("buffer %q has no %s", s.buffer.Name, lacks),
			Expected: "8 bytes", Got: fmt.Sprintf("%d bytes from offset %d", s.length, s.offset),
		}
	}
	s.length = atomicBytes
	request.WRID, request.Flags, request.NumSGE = local.WRID, local.native(), 1
	request.RemoteAddress, request.RKey = r.To.Address, r.To.RKey
	return r.post(call, request.Opcode, request, s.sges(), atomicBytes)
}

func postAtomic(_ context.Context, call *Call, args *struct {
	remoteWord
	Op      string `arg:"op,required" words:"CMP_AND_SWP|FETCH_AND_ADD" doc:"the operation"`
	Add     uint64 `arg:"add" default:"0" doc:"FETCH_AND_ADD: the number to add"`
	Compare uint64 `arg:"compare" default:"0" doc:"CMP_AND_SWP: the expected value"`
	Swap    uint64 `arg:"swap" default:"0" doc:"CMP_AND_SWP: the new value"`
	localWord
}) error {
	request := rdmacore.SendWR{Opcode: rdmacore.OpAtomicFetchAndAdd, CompareAdd: args.Add}
	if args.Op == compareAndSwap {
		request = rdmacore.SendWR{Opcode: rdmacore.OpAtomicCmpAndSwp, CompareAdd: args.Compare, Swap: args.Swap}
	}
	return args.postWord(call, &args.localWord, request, "room for the old value")
}

// maxFlushed is the maximum of the length of a FLUSH.
const maxFlushed = 1<<32 - 1

type flushArguments struct {
	onlyQueuePair
	To        optional[RemoteMemory]         `arg:"to,required" doc:"the peer's memory"`
	Length    optional[byteCount]            `arg:"length" max:"0xffffffff" doc:"RANGE: how many bytes (default: the size of the remote memory, if it is known)"`
	Placement optional[rdmacore.Placement]   `arg:"placement" doc:"GLOBAL (default): all observers see the data, PERSISTENT: it survives a loss of power"`
	Level     optional[rdmacore.Selectivity] `arg:"level" default:"RANGE" doc:"RANGE: of the bytes from there; MR: of all memory of the key"`
	wrID
	requestFlags
}

// ofAll reports whether the FLUSH is of all memory of a key.
func (a *flushArguments) ofAll() bool { return a.Level.Value == rdmacore.FlushMR }

func (a *flushArguments) check() *Refusal {
	if a.ofAll() && a.Length.Given {
		return &Refusal{
			Argument: "length", Message: "a FLUSH of level MR is of all memory of the key, and has no length",
			Hint: "level: RANGE",
		}
	}
	if a.To.known() && a.To.Value.Length < 0 && !a.ofAll() && !a.Length.Given && !a.Level.Deferred {
		return &Refusal{
			Argument: "to", Message: "a FLUSH of a range needs its length", Hint: "add length, or level: MR",
		}
	}
	return nil
}

func postFlush(_ context.Context, call *Call, args *flushArguments) (result struct {
	Length int `result:"length" doc:"bytes that it is about; 0 for all of a key"`
}, err error) {
	if refusal := args.check(); refusal != nil { // of values that are known only in the run
		return result, refusal.failure()
	}
	remote := args.To.Value
	request := rdmacore.SendWR{
		WRID: args.WRID, Opcode: rdmacore.OpFlush, Flags: args.native(), RemoteAddress: remote.Address,
		RKey:      remote.RKey,
		Placement: args.Placement.or(rdmacore.FlushGlobal), Selectivity: args.Level.Value,
	}
	switch {
	case args.Length.Given:
		result.Length = int(args.Length.Value)
	case !args.ofAll():
		result.Length = min(remote.Length, maxFlushed)
	}
	sges := []rdmacore.SGE{{Length: uint32(result.Length)}} // of which only the length counts
	if result.Length != 0 {
		request.NumSGE = 1
	}
	return result, args.post(call, rdmacore.OpFlush, request, sges, 0)
}
