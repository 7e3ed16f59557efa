package verb

import (
	"context"
	"fmt"

	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

// CanShare is the capability of devices that have shared receive queues.
const CanShare = "device.srq"

// sharedQueueVerbs make shared receive queues and post to them.
func sharedQueueVerbs() []Verb {
	srq := Argument{Name: "srq", Type: SharedQueue, Required: true, Doc: "the queue, by the name that `as` gave it"}
	return []Verb{
		{
			Name: "create_srq", Manual: "ibv_create_srq(3)", Capability: CanShare, Yields: NewSharedQueue, Run: createSRQ,
			Doc: "Make a shared receive queue; `qp: {srq: ..}` names it to the queue pairs that shall use it.  With `ep` it belongs to the id, as rdma_create_srq(3) says.",
			Arguments: []Argument{
				{Name: "ep", Type: Endpoint, Doc: "the endpoint whose own it is; without it nobody's"},
				theDomain(),
				{Name: "default_pd", Type: Boolean, Doc: "true, with ep: rdma_cm's own protection domain of the device"},
				{Name: "max_wr", Type: Integer, Default: 16, Max: 1<<32 - 1, Doc: "receives at once"},
				{Name: "max_sge", Type: Integer, Default: 1, Max: 1<<32 - 1, Doc: "buffers of a receive"}},
			Results: sharedQueueResults()[:2],
		},
		{
			Name: "modify_srq", Manual: "ibv_modify_srq(3)", Capability: CanShare, Run: modifySRQ,
			Doc: "Change attributes of a shared receive queue: those that are given, the size first.",
			Arguments: []Argument{srq,
				{Name: "max_wr", Type: Integer, Max: 1<<32 - 1, Doc: "receives at once"},
				{Name: "limit", Type: Integer, Max: 1<<32 - 1, Doc: "when fewer receives are left, SRQ_LIMIT_REACHED comes, once; 0: never"}},
		},
		{
			Name: "query_srq", Manual: "ibv_query_srq(3)", Capability: CanShare, Scalar: "srq", Yields: Value,
			Doc:       "Ask a shared receive queue for its attributes.",
			Arguments: []Argument{srq}, Results: sharedQueueResults(),
			Run: func(_ context.Context, call *Call) (Outcome, error) {
				queue, err := call.Role.SharedQueue(call.Text("srq"))
				if err != nil {
					return Outcome{}, err
				}
				return askedSRQ(queue)
			},
		},
		{
			Name: "destroy_srq", Manual: "ibv_destroy_srq(3)", Capability: CanShare, Scalar: "srq", Arguments: []Argument{srq},
			Doc: "Free a shared receive queue, which no queue pair may use (rdma_destroy_srq(3) for one of an id); what was posted disappears.",
			Run: freeing("srq", (*lab.Role).SharedQueue),
		},
	}
}

// theDomain is the argument of what is made in a protection domain.
func theDomain() Argument {
	return Argument{Name: "pd", Type: Domain, Doc: "a protection domain of alloc_pd; without it that of the role's buffers"}
}

// domainOf is the domain that a step means.
func domainOf(call *Call) (*rdmacore.PD, error) {
	if !call.Has("pd") {
		return call.Role.PD(), nil
	}
	domain, err := call.Role.Domain(call.Text("pd"))
	if err != nil {
		return nil, err
	}
	return domain.Native(), nil
}

func sharedQueueResults() []Result {
	return []Result{
		{Name: "max_wr", Type: Integer, Varies: true, Doc: "receives at once, as the device made them"},
		{Name: "max_sge", Type: Integer, Varies: true, Doc: "buffers of a receive, as the device made them"},
		{Name: "limit", Type: Integer, Doc: "the limit, while its event has not come; 0: none"},
	}
}

func askedSRQ(queue *lab.SharedQueue) (Outcome, error) {
	attr, err := queue.Native().Query()
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{
		Made:    queue,
		Fields:  []any{int(attr.MaxWR), int(attr.MaxSGE), int(attr.Limit)},
		Summary: func() string { return fmt.Sprintf("room for %d receives", attr.MaxWR) },
	}, nil
}

func createSRQ(_ context.Context, call *Call) (Outcome, error) {
	pd, err := domainOf(call)
	if err != nil {
		return Outcome{}, err
	}
	attr := rdmacore.SRQAttr{MaxWR: uint32(call.Integer("max_wr")), MaxSGE: uint32(call.Integer("max_sge"))}
	queue, err := newSRQ(call, pd, attr)
	if err != nil {
		return Outcome{}, err
	}
	outcome, err := askedSRQ(queue)
	if err == nil {
		outcome.Fields = outcome.Fields[:2]
	}
	return outcome, err
}

func newSRQ(call *Call, pd *rdmacore.PD, attr rdmacore.SRQAttr) (*lab.SharedQueue, error) {
	if !call.Has("ep") {
		return call.Role.NewSharedQueue(pd, attr)
	}
	endpoint, err := call.Endpoint("ep")
	if err != nil {
		return nil, err
	}
	if call.Boolean("default_pd") {
		pd = nil
	}
	return endpoint.NewSharedQueue(pd, attr)
}

func modifySRQ(_ context.Context, call *Call) (Outcome, error) {
	queue, err := call.Role.SharedQueue(call.Text("srq"))
	if err != nil {
		return Outcome{}, err
	}
	if call.Has("max_wr") {
		if err := queue.Native().Resize(uint32(call.Integer("max_wr"))); err != nil {
			return Outcome{}, err
		}
	}
	if call.Has("limit") {
		return Outcome{}, queue.Native().Arm(uint32(call.Integer("limit")))
	}
	return Outcome{}, nil
}

// postSRQRecvVerb is post_recv for queues that several queue pairs take from.
func postSRQRecvVerb(sges, offset, length, wrID Argument, results []Result) Verb {
	return Verb{
		Name: "post_srq_recv", Manual: "ibv_post_srq_recv(3)", Capability: CanShare, Results: results, Check: checkEntries,
		Doc: "Post a receive to a shared receive queue, for whichever of its queue pairs gets the next message.",
		Arguments: []Argument{{Name: "srq", Type: SharedQueue, Required: true, Doc: "the queue, by the name that `as` gave it"},
			{Name: "buffer", Type: Buffer, Group: bufferOrList, Doc: "where the message goes (LOCAL_WRITE)"}, sges, offset, length, wrID},
		Run: func(_ context.Context, call *Call) (Outcome, error) {
			queue, err := call.Role.SharedQueue(call.Text("srq"))
			if err != nil {
				return Outcome{}, err
			}
			return postReceive(call, queue.Native().PostRecv)
		},
	}
}
