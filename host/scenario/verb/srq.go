package verb

import (
	"context"
	"syscall"

	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

// sharedQueueVerbs are the shared receive queues of ids, from which several queue pairs take receives.
func sharedQueueVerbs() []Verb {
	sizes := []Result{
		{Name: "max_wr", Type: Integer, Varies: true, Doc: "receives that it holds"},
		{Name: "max_sge", Type: Integer, Varies: true, Doc: "buffers of a receive"},
		{Name: "limit", Type: Integer, Doc: "below so many receives SRQ_LIMIT_REACHED comes; 0 when none is armed"},
	}
	return []Verb{
		onID("create_srq", "rdma_create_srq(3)", "Make the shared receive queue of an endpoint: its post_recv goes there, and its queue pair, made afterwards, takes from there.", []Argument{
			{Name: "max_wr", Type: Integer, Required: true, Max: 1<<32 - 1, Doc: "receives that it holds at least"},
			{Name: "max_sge", Type: Integer, Default: 1, Max: 1<<32 - 1, Doc: "buffers of a receive"},
			{Name: "default_pd", Type: Boolean, Doc: "true: rdma_cm's own protection domain of the device, not that of the role's buffers"},
		}, func(call *Call, endpoint *lab.Endpoint) error {
			pd := call.Role.PD()
			if call.Boolean("default_pd") {
				pd = nil
			}
			return endpoint.ID().CreateSRQ(pd, rdmacore.SRQAttr{MaxWR: uint32(call.Integer("max_wr")), MaxSGE: uint32(call.Integer("max_sge"))})
		}),
		onID("destroy_srq", "rdma_destroy_srq(3)", "Free the shared receive queue of an endpoint, which no queue pair may use.", nil,
			func(_ *Call, endpoint *lab.Endpoint) error { return endpoint.ID().DestroySRQ() }),
		onID("modify_srq", "ibv_modify_srq(3)", "Change what is given of an endpoint's shared receive queue.",
			[]Argument{
				{Name: "limit", Type: Integer, Max: 1<<32 - 1, Doc: "SRQ_LIMIT_REACHED comes, once, when it holds fewer receives"},
				{Name: "max_wr", Type: Integer, Max: 1<<32 - 1, Doc: "receives that it holds at least"},
			},
			func(call *Call, endpoint *lab.Endpoint) error {
				queue, err := sharedQueue(endpoint)
				if err != nil {
					return err
				}
				if call.Has("max_wr") {
					if err := queue.Resize(uint32(call.Integer("max_wr"))); err != nil {
						return err
					}
				}
				if call.Has("limit") {
					return queue.Arm(uint32(call.Integer("limit")))
				}
				return nil
			}),
		{
			Name: "query_srq", Manual: "ibv_query_srq(3)", Yields: Value, Doc: "Ask for the sizes of an endpoint's shared receive queue.",
			Arguments: []Argument{theEndpoint()}, Results: sizes,
			Run: func(_ context.Context, call *Call) (Outcome, error) {
				endpoint, err := call.Endpoint("ep")
				if err != nil {
					return Outcome{}, err
				}
				queue, err := sharedQueue(endpoint)
				if err != nil {
					return Outcome{}, err
				}
				attr, err := queue.Query()
				return Outcome{Fields: []any{int(attr.MaxWR), int(attr.MaxSGE), int(attr.Limit)}}, err
			},
		},
	}
}

func sharedQueue(endpoint *lab.Endpoint) (*rdmacore.SRQ, error) {
	if queue := endpoint.ID().SRQ(); queue != nil {
		return queue, nil
	}
	return nil, &lab.Failure{
		What: "endpoint \"" + endpoint.Name + "\" has no shared receive queue of its own",
		Hint: "create_srq makes it", Errno: syscall.EBADF,
	}
}
