package replay

import (
	"cmp"
	"fmt"
	"slices"

	"rdmarun/host/trace"
)

// sharedQueue is a shared receive queue.
type sharedQueue struct {
	name     string
	receives []*request
}

// createShared is ibv_create_srq(3) and its kin; those of rdma_create_srq(3) belong to an id.
func (p *process) createShared(call *trace.Call) {
	const basic = 0 // IBV_SRQT_BASIC
	switch {
	case call.Failed():
		p.lacks(call.Name + " that failed")
		return
	case trace.NumberOf(call.Arguments, "srq_type") != basic:
		p.lacks("a shared receive queue of XRC or of tag matching")
		return
	}
	queue := &sharedQueue{name: fmt.Sprintf("srq%d", len(p.shared)+1)}
	owner := ""
	if e := p.endpoints[trace.ObjectOf(call.Arguments, "id")]; e != nil {
		e.shared, owner = queue, fmt.Sprintf("ep: %s, ", e.name)
	}
	p.shared[cmp.Or(trace.ObjectOf(call.Results, "srq"), trace.Name(call.Result))] = queue
	receives := max(1, trace.NumberOf(call.Arguments, "max_wr"))
	segments := max(1, trace.NumberOf(call.Arguments, "max_sge"))
	p.do(call, func() string {
		return fmt.Sprintf("create_srq: {%smax_wr: %d, max_sge: %d}, as: %s", owner, receives, segments, queue.name)
	})
}

// receiveShared is ibv_post_srq_recv(3).
func (p *process) receiveShared(call *trace.Call) {
	queue := p.shared[trace.ObjectOf(call.Arguments, "srq")]
	if queue == nil {
		p.lacks(call.Name + " of an object that was not recorded")
		return
	}
	p.receives(call, &queue.receives, "post_srq_recv: {srq: "+queue.name)
}

// retireOne ends the first request with that wr_id.  Those of a shared queue complete in the order of its queue pairs.
func retireOne(requests []*request, id uint64) []*request {
	at := first(requests, id)
	if at < 0 {
		return requests
	}
	requests[at].over = true
	return slices.Delete(requests, at, at+1)
}

func (p *process) destroyShared(call *trace.Call) {
	queue := p.shared[trace.ObjectOf(call.Arguments, "srq")]
	if e := p.endpoints[trace.ObjectOf(call.Arguments, "id")]; e != nil {
		queue = e.shared
	}
	if queue != nil {
		p.do(call, func() string { return fmt.Sprintf("destroy_srq: {srq: %s}", queue.name) })
	}
}
