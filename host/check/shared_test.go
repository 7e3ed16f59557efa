package check

import (
	"testing"

	"rdmarun/host/check/finding"
	"rdmarun/host/trace"
	"rdmarun/rdmacore"
)

// shared makes srq#1, which completes receives to cq#1 if it is of XRC, and posts a receive to it.
func (p *program) shared(arguments ...trace.Field) {
	p.call("ibv_create_srq_ex", trace.Word("srq#1"), append([]trace.Field{{Value: trace.Struct{
		{Name: "pd", Value: trace.Word("pd#1")},
	}}}, arguments...), nil, 0)
	p.receiveShared(1)
}

func (p *program) receiveShared(id uint64) {
	p.work(trace.Call{
		Name: "ibv_post_srq_recv", Queue: "srq#1", Posted: []trace.Request{withSegment(id, 4096, 64, 7)},
	}, 0)
}

// xrc is a receive of an XRC target, of which the completion names that queue pair.
func (p *program) xrc(id uint64, number uint32) {
	completion := trace.Completion{ID: id, Status: rdmacore.WCSuccess, Opcode: rdmacore.WCRecv, QueuePair: number}
	p.work(trace.Call{Name: "ibv_poll_cq", Queue: "cq#1", Polled: []trace.Completion{completion}}, 0)
}

// TestSharedReceives: receives of a shared receive queue are outstanding until a completion names one, or the queue is
// destroyed.
func TestSharedReceives(t *testing.T) {
	cq := trace.Field{Name: "cq", Value: trace.Word("cq#1")}
	onConnection(t, map[string]connectionCase{
		"outstanding": {func(p *program) {
			p.shared()
			p.receiveShared(2)
		}, finding.ReceiveOverlap},
		"of a target of XRC": {func(p *program) {
			p.shared(cq)
			p.call("ibv_create_qp_ex", trace.Word("qp#2"), []trace.Field{
				{Name: "qp_type", Value: trace.Word("XRC_RECV")},
			}, []trace.Field{{Name: "qp_num", Value: uint64(18)}}, 0)
			p.xrc(1, 18)
			p.receiveShared(2)
		}, ""},
		"of a target of XRC in another process": {func(p *program) {
			p.shared(cq)
			p.xrc(1, 99)
			p.receiveShared(2)
		}, ""},
		"polled before the record of the post": {func(p *program) {
			p.shared(cq)
			p.xrc(1, 99)
			p.xrc(2, 99)
			p.receiveShared(2)
			p.receiveShared(3)
		}, ""},
		"destroyed": {func(p *program) {
			p.shared()
			p.call("ibv_destroy_srq", int64(0), []trace.Field{word("srq#1")}, nil, 0)
			p.shared()
		}, ""},
		"destroyed by librdmacm": {func(p *program) {
			p.shared()
			p.call("rdma_destroy_srq", nil, []trace.Field{word("id#1"), word("srq#1")}, nil, 0)
			p.shared()
		}, ""},
		"destroyed with its endpoint": {func(p *program) {
			p.call("rdma_create_srq_ex", int64(0), []trace.Field{word("id#1")}, []trace.Field{word("srq#1")}, 0)
			p.receiveShared(1)
			p.call("rdma_destroy_ep", nil, []trace.Field{word("id#1")}, nil, 0)
			p.shared()
		}, ""},
	})
}
