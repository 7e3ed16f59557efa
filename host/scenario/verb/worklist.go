package verb

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

// listed are the operations that a list of requests may have.
var listed = map[string]rdmacore.Opcode{
	"SEND": rdmacore.OpSend, "RDMA_WRITE": rdmacore.OpRDMAWrite, "RDMA_READ": rdmacore.OpRDMARead,
}

// workListVerbs post several work requests with one call.
func workListVerbs() []Verb {
	results := []Result{
		{Name: "posted", Type: Integer, OfFailure: true, Doc: "how many requests were posted"},
		{Name: "bad_wr", Type: Integer, OfFailure: true, Doc: "with errno: the number of the request that was refused, from 0; those before it were posted"},
	}
	endpoint := Argument{Name: "ep", Type: Endpoint, Doc: "the endpoint; without it the role's only one"}
	return []Verb{
		{
			Name: "post_send_list", Manual: "ibv_post_send(3)", Results: results, Run: postSendList, Check: checkRequests,
			Doc: "Post several requests with one call.  The first that is refused ends it: those before it are posted, those after it are not; of a queue pair with send_ops all are, or none.",
			Arguments: []Argument{endpoint, {Name: "requests", Type: OptionList, Required: true,
				Doc: "the requests in their order: [{op: SEND, buffer: tx}, {op: RDMA_WRITE, buffer: tx, to: server.rx}]",
				Fields: slices.Concat([]Argument{{Name: "op", Type: Word, Words: []string{"SEND", "RDMA_WRITE", "RDMA_READ"}, Required: true, Doc: "what it does"}},
					dataOfRequest(), []Argument{
						{Name: "to", Type: Remote, Doc: "RDMA_WRITE: the peer's memory"},
						{Name: "from", Type: Remote, Doc: "RDMA_READ: the peer's memory"},
						{Name: "imm", Type: Integer, Max: 1<<32 - 1, Doc: "immediate data of a SEND or an RDMA_WRITE"},
						{Name: "invalidate", Type: Integer, Max: 1<<32 - 1, Doc: "SEND: a key of the peer that ends with the message"},
						{Name: "solicited", Type: Boolean, Doc: "wake a peer that waits for solicited completions"},
					}, datagramArguments(), sendFlagArguments()),
			}},
		},
		{
			Name: "post_recv_list", Manual: "ibv_post_recv(3)", Results: results, Run: postRecvList, Check: checkRequests,
			Doc: "Post several receives with one call.  The first that is refused ends it: those before it are posted, those after it are not.",
			Arguments: []Argument{endpoint, {Name: "requests", Type: OptionList, Required: true,
				Doc: "the receives in their order: [{buffer: rx, length: 64, wr_id: 1}, {buffer: rx, offset: 64, wr_id: 2}]", Fields: dataOfRequest()}},
		},
	}
}

// dataOfRequest is where the data of one request of a list is; without any it has no bytes.
func dataOfRequest() []Argument {
	sges := sgesArgument()
	sges.Group = ""
	return []Argument{
		{Name: "buffer", Type: Buffer, Doc: "own buffer; without it and sges the request has no bytes"}, sges,
		{Name: "offset", Type: Size, Default: 0, Doc: "where in the buffer"},
		{Name: "length", Type: Size, Doc: "how many bytes; without it, to the end of the buffer"},
		{Name: "wr_id", Type: Unsigned, Default: uint64(0), Doc: "comes back in the completion"},
	}
}

// entries are the mappings of an OptionList argument, each as the call of a verb that has its keys as arguments; none
// while only the run will know the list.
func (c *Call) entries(name string) []*Call {
	i := c.Verb.Argument(name)
	list, _ := c.argument(name).([]map[string]any)
	if i < 0 || list == nil {
		return nil
	}
	one := &Verb{Name: c.Verb.Name, Arguments: c.Verb.Arguments[i].Fields}
	calls := make([]*Call, len(list))
	for n, entry := range list {
		values := make([]any, len(one.Arguments))
		for k := range one.Arguments {
			if given, has := entry[one.Arguments[k].Name]; has {
				values[k] = given
			} else {
				values[k] = one.Arguments[k].Default
			}
		}
		calls[n] = &Call{Verb: one, Lab: c.Lab, Role: c.Role, Arguments: values}
	}
	return calls
}

// checkRequests looks at each request of a list.
func checkRequests(call *Call) *Refusal {
	for n, request := range call.entries("requests") {
		if refusal := checkRequest(request); refusal != nil {
			return &Refusal{Argument: "requests", Message: fmt.Sprintf("request %d: %s: %s", n, refusal.Argument, refusal.Message), Hint: refusal.Hint}
		}
	}
	return nil
}

// checkRequest refuses what does not go together in one request.
func checkRequest(request *Call) *Refusal {
	if request.Has("buffer") && request.Has("sges") {
		return &Refusal{Argument: "sges", Message: "a request has a buffer or a list of parts of buffers, not both"}
	}
	operation := request.Text("op")
	for _, only := range []struct{ name, of, hint string }{
		{"to", "RDMA_WRITE", "to: server.rx"}, {"from", "RDMA_READ", "from: server.rx"},
	} {
		switch {
		case request.Has(only.name) && operation != only.of:
			return &Refusal{Argument: only.name, Message: "it is of an " + only.of}
		case operation == only.of && !request.Has(only.name):
			return &Refusal{Argument: "op", Message: "an " + only.of + " needs the peer's memory", Hint: only.hint}
		}
	}
	switch {
	case request.Has("imm") && operation == "RDMA_READ":
		return &Refusal{Argument: "imm", Message: "an RDMA_READ carries no immediate data"}
	case request.Has("invalidate") && operation != "SEND":
		return &Refusal{Argument: "invalidate", Message: "only a SEND invalidates a key"}
	}
	return checkSend(request)
}

// requestsOf are the requests of a list as the run knows them; what they say may not go together only now.
func requestsOf(call *Call) ([]*Call, error) {
	entries := call.entries("requests")
	for n, entry := range entries {
		if refusal := checkRequest(entry); refusal != nil {
			return nil, ofRequest(n, &lab.Failure{What: refusal.Argument + ": " + refusal.Message, Hint: refusal.Hint})
		}
	}
	return entries, nil
}

func postSendList(_ context.Context, call *Call) (Outcome, error) {
	qp, endpoint, err := queuePair(call)
	if err != nil {
		return Outcome{}, err
	}
	entries, err := requestsOf(call)
	if err != nil {
		return Outcome{}, err
	}
	var requests []rdmacore.SendWR
	var lengths []int
	var all []rdmacore.SGE
	for n, entry := range entries {
		request, sges, length, err := sendRequest(entry, endpoint, qp, listed[entry.Text("op")])
		if err != nil {
			return Outcome{}, ofRequest(n, err)
		}
		request.FirstSGE = uint32(len(all))
		requests, all, lengths = append(requests, request), append(all, sges...), append(lengths, length)
	}
	posted, err := qp.PostSend(requests, all)
	for n := range posted {
		noteUnsignaled(qp, endpoint, requests[n].Flags)
		call.Lab.Posted(listed[entries[n].Text("op")], lengths[n])
	}
	return postedOf(posted, err)
}

func postRecvList(_ context.Context, call *Call) (Outcome, error) {
	post, err := receivePoster(call)
	if err != nil {
		return Outcome{}, err
	}
	entries, err := requestsOf(call)
	if err != nil {
		return Outcome{}, err
	}
	var requests []rdmacore.RecvWR
	var all []rdmacore.SGE
	for n, entry := range entries {
		sges, _, err := entriesOf(entry, -1)
		if err != nil {
			return Outcome{}, ofRequest(n, err)
		}
		requests = append(requests, rdmacore.RecvWR{WRID: entry.Unsigned("wr_id"), FirstSGE: uint32(len(all)), NumSGE: uint32(len(sges))})
		all = append(all, sges...)
	}
	posted, err := post(requests, all)
	return postedOf(posted, err)
}

// postedOf is what a post of several requests came to.
func postedOf(posted int, err error) (Outcome, error) {
	fields, summary := []any{posted, nil}, fmt.Sprintf("%d posted", posted)
	if err != nil {
		fields[1], summary = posted, fmt.Sprintf("request %d refused", posted)
	}
	return Outcome{Fields: fields, Summary: func() string { return summary }}, err
}

// ofRequest says of which request of a list the error is.
func ofRequest(n int, err error) error {
	var failure *lab.Failure
	if errors.As(err, &failure) {
		of := *failure
		of.What = fmt.Sprintf("request %d: %s", n, failure.What)
		return &of
	}
	return fmt.Errorf("request %d: %w", n, err)
}
