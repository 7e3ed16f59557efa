package verb

import (
	"fmt"
	"math"

	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

const (
	// Queue entries and receives that the ends need beside the messages (rdmacore/measure/worker.h).
	controlEntries = 8
	// defaultDepth is the core's, of both queues.
	defaultDepth = 128
	// verifiedBytes bounds the memory of a measurement that verifies, where every message in flight has a place of
	// its own, when the scenario does not say how many there are.
	verifiedBytes = 64 << 20
	// autoInline is what is asked for with `inline: auto`: one that has more gives this, and of one that has less
	// less is asked for (lessInline), or it says so.
	autoInline = 220
	// iWARP has no immediate data, for which control messages have these bytes inline then (rdmacore/measure/wire.h).
	payload   = 12
	page      = 4096
	cacheLine = 64
)

// pairConfig is what the largest of the sizes needs; what is too much for the device its calls will say.
func (m *measuring) pairConfig() (testbed.PairConfig, error) {
	largest := 0
	for _, spec := range m.specs {
		largest = max(largest, spec.Size)
	}
	inPayload := m.from.Device().IWARP() || m.to.Device().IWARP()
	if inPayload {
		largest += payload
	}
	stride := max((largest+cacheLine-1)/cacheLine*cacheLine, cacheLine)
	slots := 1
	if m.args.Verify == verifyData || inPayload && m.specs[0].Operation == rdmacore.OpSend {
		m.limitDepth(stride)
		slots = max(m.specs[0].Depth, m.specs[0].ReceiveDepth, 16) + controlEntries
	}
	if stride > math.MaxInt/2/slots {
		return testbed.PairConfig{}, &testbed.Failure{What: fmt.Sprintf("%d messages of %d bytes do not fit into memory", slots, largest)}
	}
	attr, err := m.from.Device().Attr()
	if err != nil {
		return testbed.PairConfig{}, err
	}
	config := testbed.PairConfig{Bytes: 2 * max(slots*stride, page), Access: rdmacore.AccessLocalWrite | rdmacore.AccessRemoteWrite | rdmacore.AccessRemoteRead}
	if attr.Atomic {
		config.Access |= rdmacore.AccessRemoteAtomic
	}
	spec := m.specs[0]
	sends := max(spec.Depth, spec.SignalEvery, spec.PostList) + max(spec.PostList, 1)
	if spec.Depth == 0 {
		sends = max(sends, defaultDepth)
	}
	receives := spec.ReceiveDepth
	if receives == 0 {
		receives = max(defaultDepth, 2*spec.PostList, 4*spec.ReceivePostList)
	}
	config.QP = rdmacore.QPInitAttr{
		MaxSendWR: uint32(sends + controlEntries), MaxRecvWR: uint32(receives + controlEntries), MaxSendSGE: 1, MaxRecvSGE: 1,
	}
	if m.args.Builders.Value {
		config.QP.SendOps = buildersOf(spec.Operation, inPayload)
	}
	if m.args.Inline == inlineAuto {
		config.QP.MaxInlineData = autoInline
	} else {
		config.QP.MaxInlineData = uint32(spec.Inline)
	}
	if inPayload {
		config.QP.MaxInlineData = max(config.QP.MaxInlineData, payload)
	}
	return config, nil
}

// buildersOf are the operations that a measurement posts: its own, and messages in which the ends talk.
func buildersOf(operation rdmacore.Opcode, inPayload bool) rdmacore.SendOps {
	ops, _ := rdmacore.ParseSendOps(operation.String()) // opcodes and operations have the same names
	if inPayload {
		return ops | rdmacore.SendOpSend
	}
	return ops | rdmacore.SendOpSendWithImm
}

// lessInline asks for half of what a device has just refused, perhaps for its inline data, where the scenario wants
// whatever the queue pair takes.  No attribute tells how much that is.
func (m *measuring) lessInline(config *testbed.PairConfig) bool {
	half := config.QP.MaxInlineData / 2
	if m.args.Inline != inlineAuto || half < payload {
		return false
	}
	config.QP.MaxInlineData = half
	return true
}

// limitDepth says how many messages may be in flight where the scenario does not, so that their places fit.
func (m *measuring) limitDepth(stride int) {
	fitting := min(max(verifiedBytes/stride, 4), defaultDepth)
	for i := range m.specs {
		spec := &m.specs[i]
		if spec.Kind == rdmacore.MeasureBandwidth && spec.Depth == 0 {
			spec.Depth = max(fitting, spec.PostList, spec.SignalEvery+spec.PostList)
		}
		if spec.Operation == rdmacore.OpSend && spec.ReceiveDepth == 0 {
			spec.ReceiveDepth = max(fitting, 2*spec.PostList, 4*spec.ReceivePostList)
		}
	}
}
