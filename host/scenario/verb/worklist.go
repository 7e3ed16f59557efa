package verb

import (
	"context"
	"errors"
	"fmt"

	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// workListVerbs post several work requests with one call.
var workListVerbs = []Verb{
	post("post_send_list", "ibv_post_send(3)",
		"Post several requests with one call.  The first error ends it: requests before it are posted, those "+
			"after it are not.  With send_ops all are posted, or none.",
		postSendList).sending(),
	post("post_recv_list", "ibv_post_recv(3)",
		"Post several receives with one call.  The first that is refused ends it: those before it are posted, those "+
			"after it are not.",
		postRecvList),
}

// sendRequest is a SEND, an RDMA_WRITE or an RDMA_READ as a list of requests has it; those that post one make theirs of
// their arguments.
type sendRequest struct {
	Op rdmacore.Opcode `arg:"op,required" words:"SEND|RDMA_WRITE|RDMA_READ" doc:"what it does"`
	requestData
	To         optional[RemoteMemory] `arg:"to" doc:"RDMA_WRITE: the peer's memory"`
	From       optional[RemoteMemory] `arg:"from" doc:"RDMA_READ: the peer's memory"`
	Imm        optional[uint32]       `arg:"imm" doc:"immediate data of a SEND or an RDMA_WRITE"`
	Invalidate optional[uint32]       `arg:"invalidate" doc:"SEND: a key of the peer that ends with the message"`
	solicited
	datagram
	dataFlags
}

// check refuses what does not go together.
func (r sendRequest) check() *Refusal {
	if r.Buffer.Given && r.SGEs.Given {
		return r.requestData.check()
	}
	for _, only := range []struct {
		name, hint string
		of         rdmacore.Opcode
		given      bool
	}{
		{"to", "to: server.rx", rdmacore.OpRDMAWrite, r.To.Given},
		{"from", "from: server.rx", rdmacore.OpRDMARead, r.From.Given},
	} {
		switch {
		case only.given && r.Op != only.of:
			return &Refusal{Argument: only.name, Message: "it is of an " + only.of.String()}
		case r.Op == only.of && !only.given:
			return &Refusal{
				Argument: "op", Message: "an " + only.of.String() + " needs the peer's memory", Hint: only.hint,
			}
		}
	}
	switch {
	case r.Imm.Given && r.Op == rdmacore.OpRDMARead:
		return &Refusal{Argument: "imm", Message: "an RDMA_READ carries no immediate data"}
	case r.Invalidate.Given && r.Op != rdmacore.OpSend:
		return &Refusal{Argument: "invalidate", Message: "only a SEND invalidates a key"}
	case r.AH.Given && !r.RemoteQPN.Given:
		return &Refusal{
			Argument: "ah", Message: "a datagram goes to a queue pair, and the number of that is missing",
			Hint: "remote_qpn says it; an event and query_qp have it",
		}
	case r.Imm.Given && r.Invalidate.Given:
		return &Refusal{
			Argument: "invalidate", Message: "a message carries immediate data or a key to invalidate, not both",
		}
	case r.AH.Given && r.Invalidate.Given:
		return &Refusal{Argument: "invalidate", Message: "a datagram invalidates nothing"}
	}
	return r.requestData.check()
}

// native is the request for the core, its scatter/gather entries and their bytes.
func (r *sendRequest) native(
	call *Call, by *onlyQueuePair,
) (request rdmacore.SendWR, sges []rdmacore.SGE, length int, err error) {
	request = rdmacore.SendWR{
		WRID: r.WRID, Opcode: r.Op, Flags: r.dataFlags.native() | flag(r.Solicited, rdmacore.SendSolicited),
	}
	remote, most := RemoteMemory{}, -1
	switch r.Op {
	case rdmacore.OpRDMAWrite:
		remote, most = r.To.Value, r.To.Value.Length
	case rdmacore.OpRDMARead:
		remote, most = r.From.Value, r.From.Value.Length
	}
	request.RemoteAddress, request.RKey = remote.Address, remote.RKey
	switch {
	case r.Invalidate.Given:
		request.Opcode, request.ImmData = rdmacore.OpSendWithInv, r.Invalidate.Value
	case r.Imm.Given && r.Op == rdmacore.OpSend:
		request.Opcode, request.ImmData = rdmacore.OpSendWithImm, wireOrder(r.Imm.Value)
	case r.Imm.Given:
		request.Opcode, request.ImmData = rdmacore.OpRDMAWriteWithImm, wireOrder(r.Imm.Value)
	}
	if err := r.datagram.address(call, by, &request); err != nil {
		return request, nil, 0, err
	}
	sges, length, err = r.sges(most)
	request.NumSGE = uint32(len(sges))
	return request, sges, length, err
}

// post posts the request alone.
func (r *sendRequest) post(call *Call, by *onlyQueuePair) (posted, error) {
	request, sges, length, err := r.native(call, by)
	if err != nil {
		return posted{}, err
	}
	return posted{length}, by.post(call, r.Op, request, sges, length)
}

type postSendListArguments struct {
	onlyQueuePair
	Requests []sendRequest `arg:"requests,required" doc:"the requests in their order: [{op: SEND, buffer: tx}, {op: RDMA_WRITE, buffer: tx, to: server.rx}]"`
}

func (a *postSendListArguments) check() *Refusal { return checkEach(a.Requests) }

type postRecvListArguments struct {
	onlyEndpoint
	Requests []requestData `arg:"requests,required" doc:"the receives in their order: [{buffer: rx, length: 64, wr_id: 1}, {buffer: rx, offset: 64, wr_id: 2}]"`
}

func (a *postRecvListArguments) check() *Refusal { return checkEach(a.Requests) }

// checkEach is the first refusal of a request of a list.
func checkEach[T interface{ check() *Refusal }](requests []T) *Refusal {
	for n := range requests {
		if r := requests[n].check(); r != nil {
			return &Refusal{
				Argument: "requests", Message: fmt.Sprintf("request %d: %s: %s", n, r.Argument, r.Message),
				Hint: r.Hint,
			}
		}
	}
	return nil
}

// listPosted is what a post of several requests came to.
type listPosted struct {
	Posted int           `result:"posted,failed" doc:"how many requests were posted"`
	BadWR  optional[int] `result:"bad_wr,failed" doc:"with errno: the index of the rejected request, from 0. Those before it were posted"`
}

func (l listPosted) summary() string {
	if l.BadWR.Given {
		return fmt.Sprintf("request %d refused", l.BadWR.Value)
	}
	return fmt.Sprintf("%d posted", l.Posted)
}

func listPostedOf(posted int, err error) (listPosted, error) {
	return listPosted{posted, when(err != nil, posted)}, err
}

func postSendList(_ context.Context, call *Call, args *postSendListArguments) (listPosted, error) {
	if refusal := args.check(); refusal != nil { // of values that are known only in the run
		return listPosted{}, refusal.failure()
	}
	var requests []rdmacore.SendWR
	var lengths []int
	var all []rdmacore.SGE
	for n := range args.Requests {
		request, sges, length, err := args.Requests[n].native(call, &args.onlyQueuePair)
		if err != nil {
			return listPosted{}, ofEntry("request", n, err)
		}
		request.FirstSGE = uint32(len(all))
		requests, all, lengths = append(requests, request), append(all, sges...), append(lengths, length)
	}
	posted, err := args.qp.PostSend(requests, all)
	for n := range posted {
		args.posted(call, args.Requests[n].Op, requests[n].Flags, lengths[n])
	}
	return listPostedOf(posted, err)
}

func postRecvList(_ context.Context, call *Call, args *postRecvListArguments) (listPosted, error) {
	receive, err := receivePoster(call, args.EP)
	if err != nil {
		return listPosted{}, err
	}
	if refusal := args.check(); refusal != nil { // of values that are known only in the run
		return listPosted{}, refusal.failure()
	}
	var requests []rdmacore.RecvWR
	var all []rdmacore.SGE
	for n := range args.Requests {
		sges, _, err := args.Requests[n].sges(-1)
		if err != nil {
			return listPosted{}, ofEntry("request", n, err)
		}
		requests = append(requests, rdmacore.RecvWR{
			WRID: args.Requests[n].WRID, FirstSGE: uint32(len(all)), NumSGE: uint32(len(sges)),
		})
		all = append(all, sges...)
	}
	return listPostedOf(receive(requests, all))
}

// ofEntry adds the entry of a list to an error.
func ofEntry(what string, n int, err error) error {
	var failure *testbed.Failure
	if errors.As(err, &failure) {
		of := *failure
		of.What = fmt.Sprintf("%s %d: %s", what, n, failure.What)
		return &of
	}
	return fmt.Errorf("%s %d: %w", what, n, err)
}
