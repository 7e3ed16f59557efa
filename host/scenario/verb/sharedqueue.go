package verb

import (
	"context"
	"fmt"

	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// CanShare is the capability of devices that have shared receive queues.
const CanShare = "device.srq"

// sharedQueueVerbs make shared receive queues; post_srq_recv posts to them.
func sharedQueueVerbs() []Verb {
	return []Verb{
		define(Verb{
			Name: "create_srq", Manual: "ibv_create_srq(3)", Capability: CanShare, Yields: NewSharedQueue,
			Doc: "Make a shared receive queue; `qp: {srq: ..}` names it to the queue pairs that shall use it.  With `ep` it belongs to the id, as rdma_create_srq(3) says.",
		}, createSRQ),
		define(Verb{
			Name: "modify_srq", Manual: "ibv_modify_srq(3)", Capability: CanShare,
			Doc: "Change attributes of a shared receive queue: those that are given, the size first.",
		}, action(modifySRQ)),
		define(Verb{
			Name: "query_srq", Manual: "ibv_query_srq(3)", Capability: CanShare, Scalar: "srq", Yields: Value,
			Doc: "Ask a shared receive queue for its attributes.",
		}, querySRQ),
		define(Verb{
			Name: "destroy_srq", Manual: "ibv_destroy_srq(3)", Capability: CanShare, Scalar: "srq",
			Doc: "Free a shared receive queue, which no queue pair may use (rdma_destroy_srq(3) for one of an id); what was posted disappears.",
		}, action(func(_ context.Context, _ *Call, args *theSharedQueue) error { return args.SRQ.Free() })),
	}
}

// theSharedQueue is the argument of verbs that concern a shared receive queue.
type theSharedQueue struct {
	SRQ *testbed.SharedQueue `arg:"srq,required" doc:"the queue, by the name that 'as' gave it"`
}

// sharedQueueSize is how much a shared receive queue holds.
type sharedQueueSize struct {
	MaxWR  uint32 `result:"max_wr,varies" doc:"receives at once, as the device made them"`
	MaxSGE uint32 `result:"max_sge,varies" doc:"buffers of a receive, as the device made them"`
}

// sharedQueueState is struct ibv_srq_attr.
type sharedQueueState struct {
	sharedQueueSize
	Limit uint32 `result:"limit" doc:"the limit, while its event has not come; 0: none"`
}

func sharedQueueStateOf(call *Call, queue *testbed.SharedQueue) (sharedQueueState, error) {
	attr, err := queue.Native().Query()
	if err != nil {
		return sharedQueueState{}, err
	}
	call.Outcome.Summary = func() string { return fmt.Sprintf("room for %d receives", attr.MaxWR) }
	return sharedQueueState{sharedQueueSize{attr.MaxWR, attr.MaxSGE}, attr.Limit}, nil
}

func createSRQ(_ context.Context, call *Call, args *struct {
	EP *testbed.Endpoint `arg:"ep" doc:"the endpoint whose own it is; without it nobody's"`
	inDomain
	DefaultPD bool   `arg:"default_pd" doc:"true, with ep: rdma_cm's own protection domain of the device"`
	MaxWR     uint32 `arg:"max_wr" default:"16" doc:"receives at once"`
	MaxSGE    uint32 `arg:"max_sge" default:"1" doc:"buffers of a receive"`
}) (sharedQueueSize, error) {
	attr, pd := rdmacore.SRQAttr{MaxWR: args.MaxWR, MaxSGE: args.MaxSGE}, args.domain(call)
	var queue *testbed.SharedQueue
	var err error
	switch {
	case args.EP == nil:
		queue, err = call.Role.NewSharedQueue(pd, attr)
	case args.DefaultPD:
		queue, err = args.EP.NewSharedQueue(nil, attr)
	default:
		queue, err = args.EP.NewSharedQueue(pd, attr)
	}
	if err != nil {
		return sharedQueueSize{}, err
	}
	call.Outcome.Made = queue
	state, err := sharedQueueStateOf(call, queue)
	return state.sharedQueueSize, err
}

func modifySRQ(_ context.Context, _ *Call, args *struct {
	theSharedQueue
	MaxWR Optional[uint32] `arg:"max_wr" doc:"receives at once"`
	Limit Optional[uint32] `arg:"limit" doc:"when fewer receives are left, SRQ_LIMIT_REACHED comes, once; 0: never"`
}) error {
	queue := args.SRQ.Native()
	if args.MaxWR.Given {
		if err := queue.Resize(args.MaxWR.Value); err != nil {
			return err
		}
	}
	if args.Limit.Given {
		return queue.Arm(args.Limit.Value)
	}
	return nil
}

func querySRQ(_ context.Context, call *Call, args *theSharedQueue) (sharedQueueState, error) {
	return sharedQueueStateOf(call, args.SRQ)
}
