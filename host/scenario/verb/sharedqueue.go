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
		ask("create_srq", "ibv_create_srq(3)",
			"Make a shared receive queue; `qp: {srq: ..}` names it to the queue pairs that shall use it.  With `ep` it belongs to the id, as rdma_create_srq(3) says.",
			createSRQ).needing(CanShare).yields(NewSharedQueue),
		act("modify_srq", "ibv_modify_srq(3)", "Change attributes of a shared receive queue: those that are given, the size first.",
			modifySRQ).needing(CanShare),
		ask("query_srq", "ibv_query_srq(3)", "Ask a shared receive queue for its attributes.",
			func(_ context.Context, _ *Call, args *theSharedQueue) (sharedQueueState, error) {
				attr, err := args.SRQ.Native().Query()
				return sharedQueueState{sharedQueueSize{attr.MaxWR, attr.MaxSGE}, attr.Limit}, err
			}).needing(CanShare).scalar("srq"),
		act("destroy_srq", "ibv_destroy_srq(3)",
			"Free a shared receive queue, which no queue pair may use (rdma_destroy_srq(3) for one of an id); what was posted disappears.",
			func(_ context.Context, _ *Call, args *theSharedQueue) error { return args.SRQ.Free() }).needing(CanShare).scalar("srq"),
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

func (s sharedQueueSize) summary() string { return fmt.Sprintf("room for %d receives", s.MaxWR) }

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
	made, err := queue.Native().Query()
	return sharedQueueSize{made.MaxWR, made.MaxSGE}, err
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
