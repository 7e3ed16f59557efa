package check

import (
	"testing"

	"rdmarun/host/check/finding"
	"rdmarun/host/trace"
	"rdmarun/rdmacore"
)

// region makes mr#2 with key 9 by a call.
func (p *program) region(call string, arguments ...trace.Field) {
	p.call(
		call, trace.Word("mr#2"), append([]trace.Field{word("pd#1")}, arguments...),
		[]trace.Field{{Name: "lkey", Value: uint64(9)}}, 0,
	)
}

// reregister changes mr#1, which has key 8 then.
func (p *program) reregister(flags string, arguments ...trace.Field) {
	p.call("ibv_rereg_mr", int64(0), append([]trace.Field{
		word("mr#1"), {Name: "flags", Value: trace.Word(flags)},
	}, arguments...), []trace.Field{{Name: "lkey", Value: uint64(8)}}, 0)
}

func (p *program) receiveInto(id, address, length uint64, key uint32) {
	p.work(trace.Call{
		Name: "ibv_post_recv", Queue: "qp#1", Posted: []trace.Request{withSegment(id, address, length, key)},
	}, 0)
}

// TestKindsOfRegions: which memory requests may name in regions that no ibv_reg_mr made, or that were changed.
func TestKindsOfRegions(t *testing.T) {
	length := trace.Field{Name: "length", Value: uint64(64)}
	access := trace.Field{Name: "access", Value: trace.Word("LOCAL_WRITE|ZERO_BASED")}
	moved := []trace.Field{{Name: "addr", Value: uint64(1 << 20)}, length}
	onConnection(t, map[string]connectionCase{
		"device memory": {func(p *program) {
			p.region("ibv_reg_dm_mr", length, access)
			p.receiveInto(1, 0, 64, 9)
		}, ""},
		"beyond device memory": {func(p *program) {
			p.region("ibv_reg_dm_mr", length, access)
			p.receiveInto(1, 32, 64, 9)
		}, finding.OutsideRegion},
		"many regions of device memory": {func(p *program) {
			for range manyRegistrations {
				p.region("ibv_reg_dm_mr", length, access)
				p.call("ibv_dereg_mr", int64(0), []trace.Field{word("mr#2")}, nil, 0)
			}
		}, ""},
		"discarded": {func(p *program) {
			p.region("ibv_alloc_null_mr")
			p.receiveInto(1, 64, 64, 9)
			p.receiveInto(2, 64, 64, 9)
		}, ""},
		"imported": {func(p *program) {
			p.region("ibv_import_mr")
			p.receiveInto(1, 4096, 64, 9)
		}, ""},
		"of an imported domain": {func(p *program) {
			p.call("ibv_import_pd", trace.Word("pd#2"), nil, nil, 0)
			p.call(
				"ibv_reg_mr", trace.Word("mr#2"), append([]trace.Field{word("pd#2"), access}, moved...),
				[]trace.Field{{Name: "lkey", Value: uint64(9)}}, 0,
			)
			p.receiveInto(1, 0, 64, 9)
		}, ""},
		"moved": {func(p *program) {
			p.reregister("TRANSLATION", moved...)
			p.receiveInto(1, 1<<20, 64, 8)
		}, ""},
		"where it was": {func(p *program) {
			p.reregister("TRANSLATION", moved...)
			p.receiveInto(1, 4096, 64, 8)
		}, finding.OutsideRegion},
		"its former key": {func(p *program) {
			p.reregister("TRANSLATION", moved...)
			p.receiveInto(1, 1<<20, 64, 7)
		}, finding.UnknownKey},
		"in another domain": {func(p *program) {
			p.reregister("PD", word("pd#2"))
			p.receiveInto(1, 4096, 64, 8)
		}, finding.WrongPD},
		"in the first domain again": {func(p *program) {
			p.reregister("PD", word("pd#2"))
			p.reregister("PD", word("pd#1"))
			p.receiveInto(1, 4096, 64, 8)
		}, ""},
		"not writable any more": {func(p *program) {
			p.reregister("ACCESS", trace.Field{Name: "access", Value: trace.Word("REMOTE_READ")})
			p.receiveInto(1, 4096, 64, 8)
		}, finding.RegionReadOnly},
		"changed after a receive was polled": {func(p *program) {
			p.receiveInto(1, 4096, 64, 7)
			p.completion(1, rdmacore.WCSuccess, rdmacore.WCRecv)
			p.reregister("PD", word("pd#1"))
			p.deregister()
		}, ""},
	})
}
