package verb

import (
	"context"
	"errors"
	"fmt"

	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// workListVerbs post several work requests with one call.
func workListVerbs() []Verb {
	return []Verb{
		define(Verb{
			Name: "post_send_list", Manual: "ibv_post_send(3)",
			Doc: "Post several requests with one call.  The first that is refused ends it: those before it are posted, those after it are not; of a queue pair with send_ops all are, or none.",
		}, postSendList),
		define(Verb{
			Name: "post_recv_list", Manual: "ibv_post_recv(3)",
			Doc: "Post several receives with one call.  The first that is refused ends it: those before it are posted, those after it are not.",
		}, postRecvList),
	}
}

// requestData is where the data of one request of a list is; without any it has no bytes.
type requestData struct {
	Buffer Optional[*testbed.Buffer] `arg:"buffer" doc:"own buffer; without it and sges the request has no bytes"`
	SGEs   Optional[[]entry]         `arg:"sges" doc:"instead of buffer, several parts of buffers in their order: [{buffer: head, length: 16}, {buffer: tail, offset: 8}]; as many as the queue pair has max_send_sge or max_recv_sge"`
	bufferPart
}

func (d *requestData) check() *Refusal {
	if d.Buffer.Given && d.SGEs.Given {
		return &Refusal{Argument: "sges", Message: "a request has a buffer or a list of parts of buffers, not both"}
	}
	return checkEntries(d.SGEs, d.Offset, d.Length)
}

// listedSend is one send request of a list.
type listedSend struct {
	Op string `arg:"op,required" words:"SEND|RDMA_WRITE|RDMA_READ" doc:"what it does"`
	requestData
	To         Optional[RemoteMemory] `arg:"to" doc:"RDMA_WRITE: the peer's memory"`
	From       Optional[RemoteMemory] `arg:"from" doc:"RDMA_READ: the peer's memory"`
	Imm        Optional[uint32]       `arg:"imm" doc:"immediate data of a SEND or an RDMA_WRITE"`
	Invalidate Optional[uint32]       `arg:"invalidate" doc:"SEND: a key of the peer that ends with the message"`
	solicited
	datagram
	dataFlags
}

// request is the request of the list as the verbs of single ones have it.
func (l *listedSend) request() *sendRequest {
	r := &sendRequest{
		operation: rdmacore.OpSend, list: l.SGEs, buffer: l.Buffer.Value, part: l.bufferPart, imm: l.Imm, invalidate: l.Invalidate,
		datagram: l.datagram, flags: l.native(l.Solicited),
	}
	switch l.Op {
	case rdmacore.OpRDMAWrite.String():
		r.operation, r.remote = rdmacore.OpRDMAWrite, l.To.Value
	case rdmacore.OpRDMARead.String():
		r.operation, r.remote = rdmacore.OpRDMARead, l.From.Value
	}
	return r
}

// check refuses what does not go together in one request.
func (l *listedSend) check() *Refusal {
	if refusal := l.requestData.check(); refusal != nil && refusal.Argument == "sges" {
		return refusal
	}
	for _, only := range []struct {
		name, of, hint string
		given          bool
	}{
		{"to", "RDMA_WRITE", "to: server.rx", l.To.Given}, {"from", "RDMA_READ", "from: server.rx", l.From.Given},
	} {
		switch {
		case only.given && l.Op != only.of:
			return &Refusal{Argument: only.name, Message: "it is of an " + only.of}
		case l.Op == only.of && !only.given:
			return &Refusal{Argument: "op", Message: "an " + only.of + " needs the peer's memory", Hint: only.hint}
		}
	}
	switch {
	case l.Imm.Given && l.Op == "RDMA_READ":
		return &Refusal{Argument: "imm", Message: "an RDMA_READ carries no immediate data"}
	case l.Invalidate.Given && l.Op != "SEND":
		return &Refusal{Argument: "invalidate", Message: "only a SEND invalidates a key"}
	}
	return l.request().check()
}

type postSendListArguments struct {
	onlyEndpoint
	Requests []listedSend `arg:"requests,required" doc:"the requests in their order: [{op: SEND, buffer: tx}, {op: RDMA_WRITE, buffer: tx, to: server.rx}]"`
}

func (a *postSendListArguments) check() *Refusal {
	for n := range a.Requests {
		if refusal := a.Requests[n].check(); refusal != nil {
			return refusal.ofRequest(n)
		}
	}
	return nil
}

type postRecvListArguments struct {
	onlyEndpoint
	Requests []requestData `arg:"requests,required" doc:"the receives in their order: [{buffer: rx, length: 64, wr_id: 1}, {buffer: rx, offset: 64, wr_id: 2}]"`
}

func (a *postRecvListArguments) check() *Refusal {
	for n := range a.Requests {
		if refusal := a.Requests[n].check(); refusal != nil {
			return refusal.ofRequest(n)
		}
	}
	return nil
}

// ofRequest is the refusal of one request as that of the list.
func (r *Refusal) ofRequest(n int) *Refusal {
	return &Refusal{Argument: "requests", Message: fmt.Sprintf("request %d: %s: %s", n, r.Argument, r.Message), Hint: r.Hint}
}

// listPosted is what a post of several requests came to.
type listPosted struct {
	Posted int           `result:"posted,failed" doc:"how many requests were posted"`
	BadWR  Optional[int] `result:"bad_wr,failed" doc:"with errno: the number of the request that was refused, from 0; those before it were posted"`
}

func listPostedOf(call *Call, posted int, err error) (listPosted, error) {
	result, summary := listPosted{Posted: posted}, fmt.Sprintf("%d posted", posted)
	if err != nil {
		result.BadWR, summary = some(posted), fmt.Sprintf("request %d refused", posted)
	}
	call.Outcome.Summary = func() string { return summary }
	return result, err
}

func postSendList(_ context.Context, call *Call, args *postSendListArguments) (listPosted, error) {
	qp, err := args.EP.QP()
	if err != nil {
		return listPosted{}, err
	}
	if refusal := args.check(); refusal != nil { // of what only the run knows
		return listPosted{}, refusal.failure()
	}
	var requests []rdmacore.SendWR
	var lengths []int
	var all []rdmacore.SGE
	for n := range args.Requests {
		request, sges, length, err := args.Requests[n].request().native(call, args.EP, qp)
		if err != nil {
			return listPosted{}, ofEntry("request", n, err)
		}
		request.FirstSGE = uint32(len(all))
		requests, all, lengths = append(requests, request), append(all, sges...), append(lengths, length)
	}
	posted, err := qp.PostSend(requests, all)
	for n := range posted {
		notePosted(call, args.EP, args.Requests[n].request().operation, requests[n].Flags, lengths[n])
	}
	return listPostedOf(call, posted, err)
}

func postRecvList(_ context.Context, call *Call, args *postRecvListArguments) (listPosted, error) {
	post, err := receivePoster(args.EP)
	if err != nil {
		return listPosted{}, err
	}
	if refusal := args.check(); refusal != nil { // of what only the run knows
		return listPosted{}, refusal.failure()
	}
	var requests []rdmacore.RecvWR
	var all []rdmacore.SGE
	for n := range args.Requests {
		data := &args.Requests[n]
		sges, _, err := sgesOf(data.SGEs.Value, data.Buffer.Value, data.Offset.Value, data.Length, -1)
		if err != nil {
			return listPosted{}, ofEntry("request", n, err)
		}
		requests = append(requests, rdmacore.RecvWR{WRID: data.WRID, FirstSGE: uint32(len(all)), NumSGE: uint32(len(sges))})
		all = append(all, sges...)
	}
	posted, err := post(requests, all)
	return listPostedOf(call, posted, err)
}

// ofEntry says of which entry of a list the error is.
func ofEntry(what string, n int, err error) error {
	var failure *testbed.Failure
	if errors.As(err, &failure) {
		of := *failure
		of.What = fmt.Sprintf("%s %d: %s", what, n, failure.What)
		return &of
	}
	return fmt.Errorf("%s %d: %w", what, n, err)
}
