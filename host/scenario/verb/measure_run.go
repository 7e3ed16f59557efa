package verb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/explain"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// measuring is a measurement while it runs.
type measuring struct {
	call     *Call
	args     *measureArguments
	from, to *testbed.Role  // nil for the one that another process plays
	other    *exchange      // with that process; nil: both are here
	iwarp    bool           // one of the two is on iWARP
	parts    []part         // sizes, or stages of sizes
	part     part           // the one that is measured
	elapsed  time.Duration  // how long the stages of its size before it took
	pairs    []measuredPair // of each queue pair; none for connections
	sums     measured
	tooFew   error // the first part with fewer messages than min_messages
}

// measuredPair is a queue pair of each role, or of the one that is here.
type measuredPair struct {
	*testbed.Pair
	there remoteMemory // of the one that is not here
}

func measure(ctx context.Context, call *Call, args *measureArguments) (measured, error) {
	m := &measuring{call: call, args: args}
	divided, err := m.findRoles()
	if err != nil {
		return measured{}, err
	}
	if divided {
		there := string(args.From)
		if m.to == nil {
			there = string(args.To)
		}
		m.other = meet(ctx, call.PeerConn(string(args.From), string(args.To)), there)
		err = m.other.finish(m.all(m.other.ctx))
		return m.sums, err
	}
	err = m.all(ctx)
	return m.sums, err
}

// findRoles finds the roles that are here; divided means that it is one of them.
func (m *measuring) findRoles() (divided bool, err error) {
	for _, each := range []struct {
		name roleName
		role **testbed.Role
	}{{m.args.From, &m.from}, {m.args.To, &m.to}} {
		role, missing := m.call.Testbed.Role(string(each.name))
		if _, known := m.call.Testbed.AddressOf(string(each.name)); missing != nil &&
			(!known || m.call.PeerConn == nil) {
			return false, missing
		}
		*each.role, err = role, errors.Join(err, missing)
	}
	if m.from == nil && m.to == nil {
		return false, err
	}
	return m.from == nil || m.to == nil, nil
}

// here are the roles that this process plays, the one that begins first.
func (m *measuring) here() []*testbed.Role {
	return slices.DeleteFunc([]*testbed.Role{m.from, m.to}, func(role *testbed.Role) bool { return role == nil })
}

// all measures between the roles.
func (m *measuring) all(ctx context.Context) error {
	parts, refusal := m.args.parts()
	if refusal != nil {
		return refusal.failure()
	}
	m.parts = parts
	return m.call.Testbed.Busy(ctx, "a measurement", m.run, m.here()...)
}

// run measures each part on the same connections, which are unchanged after each.
func (m *measuring) run(ctx context.Context) (err error) {
	if err := m.greet(ctx); err != nil {
		return err
	}
	if m.parts[0].spec.Kind != rdmacore.MeasureConnect {
		if err := m.connect(ctx); err != nil {
			return err
		}
		defer func() {
			m.other.fail(err) // before its connections end
			err = errors.Join(err, m.disconnect())
		}()
	}
	for i, part := range m.parts {
		if m.part = part; part.first {
			m.elapsed = 0
		}
		if m.call.Progress != nil {
			m.call.Progress(part.text(), i+1, len(m.parts))
		}
		if err := m.measurePart(ctx); err != nil || m.sums.Cut {
			return err
		}
	}
	return m.tooFew // the parts after it were measured, too
}

func (m *measuring) connect(ctx context.Context) error {
	config, err := m.pairConfig()
	if err != nil {
		return err
	}
	for range m.qps() {
		pair, err := m.pair(ctx, config)
		if pair.Pair != nil { // half made, if it failed
			m.pairs = append(m.pairs, pair)
		}
		if err != nil {
			m.other.fail(err) // before its connections end
			return errors.Join(err, m.disconnect())
		}
	}
	return nil
}

func (m *measuring) disconnect() error {
	var failures []error
	for _, pair := range m.pairs {
		failures = append(failures, pair.Close())
	}
	m.pairs = nil
	return errors.Join(failures...)
}

// measurePart measures the current part on all of its queue pairs at once.
func (m *measuring) measurePart(ctx context.Context) error {
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	prepared, err := m.prepareBoth(ctx, m.part.spec)
	defer func() {
		for _, each := range prepared {
			each.Close()
		}
	}()
	if err != nil {
		return m.failure(err)
	}
	stop, over := m.watch(prepared, cancel), m.awaitOver(running, cancel)
	results := make([]*rdmacore.MeasureResult, len(prepared))
	var group sync.WaitGroup
	for i, each := range prepared {
		group.Go(func() {
			var err error
			if results[i], err = each.Run(running); err != nil {
				cancel(err) // the others would measure something else from here on
			}
		})
	}
	m.call.Testbed.Clock().OnWall(group.Wait)
	over() // before it, the other half has sent its last figures
	stop()
	err = context.Cause(running) // what ended first, not its consequences
	m.sums.Cut = errors.Is(err, errAborted)
	if err != nil && !m.sums.Cut {
		var failed *rdmacore.MeasureError
		if errors.As(err, &failed) && (failed.Status != rdmacore.WCSuccess || failed.Event != 0) {
			err = m.other.reason(err)
		}
		return m.failure(err)
	}
	there, err := m.conclude(ctx, results)
	switch {
	case err != nil:
	case m.from != nil:
		m.report(results, there)
	default:
		if last := m.other.running.Swap(nil); last != nil { // what comes is of the next part
			m.elapsed += last.Active.Took
		}
	}
	return err
}

// errAborted is the cause of a context that a threshold has ended.
var errAborted = errors.New("a threshold with abort_on_fail did not hold")

// prepare prepares a measurement between the ends of each queue pair, or one of connections. For connections the one
// to listens, and elsewhere has that port.
func (m *measuring) prepare(spec rdmacore.MeasureSpec, port uint16) (all []*rdmacore.Measurement, err error) {
	spec.Elsewhere = m.other != nil
	for _, ends := range m.ends(spec.Kind, port) {
		prepared, err := rdmacore.NewMeasurement(spec, ends...)
		if err != nil {
			return all, err
		}
		all = append(all, prepared)
	}
	return all, nil
}

// ends are those of each measurement that are here.
func (m *measuring) ends(kind rdmacore.MeasureKind, port uint16) (list [][]rdmacore.MeasureEnd) {
	if kind == rdmacore.MeasureConnect {
		var ends []rdmacore.MeasureEnd
		address, _ := m.call.Testbed.AddressOf(string(m.args.To))
		if m.from != nil {
			ends = append(ends, rdmacore.MeasureEnd{
				Role: rdmacore.MeasureActive, Provider: m.from.Provider(), Address: netip.AddrPortFrom(address, port),
				Source: m.from.Source(address), CPUs: m.from.CPUs(),
			})
		}
		if m.to != nil {
			ends = append(ends, rdmacore.MeasureEnd{
				Role: rdmacore.MeasurePassive, Provider: m.to.Provider(), Address: netip.AddrPortFrom(address, 0),
				CPUs: m.to.CPUs(),
			})
		}
		return [][]rdmacore.MeasureEnd{ends}
	}
	for i := range m.part.qps {
		pair := &m.pairs[i]
		var ends []rdmacore.MeasureEnd
		add := func(role rdmacore.MeasureRole, party *testbed.Role, here, there *testbed.PairEnd) {
			if party == nil {
				return
			}
			memory := pair.there
			if m.other == nil {
				memory = memoryOf(there)
			}
			ends = append(ends, rdmacore.MeasureEnd{
				Role: role, ID: here.ID, Memory: here.MR, CPUs: party.CPUs(),
				RemoteAddress: memory.Address, RemoteLength: memory.Length, RemoteKey: memory.Key,
			})
		}
		add(rdmacore.MeasureActive, m.from, &pair.Active, &pair.Passive)
		add(rdmacore.MeasurePassive, m.to, &pair.Passive, &pair.Active)
		list = append(list, ends)
	}
	return list
}

// failure is an error of the core in terms of the scenario.
func (m *measuring) failure(err error) error {
	var knob *rdmacore.MeasureKnobError
	var failed *rdmacore.MeasureError
	switch {
	case errors.As(err, &knob):
		return refusalOf(err).failure()
	case errors.As(err, &failed):
		failure := &testbed.Failure{
			What: "the measurement failed", Expected: "success", Got: failed.Error(), Hint: failed.Why,
		}
		if failed.Why == "" && failed.Status != rdmacore.WCSuccess {
			failure.Hint = explain.Completion(failed.Status.String())
		}
		if m.sums.Messages > 0 {
			failure.Got += fmt.Sprintf(" (after %d messages of sizes before)", m.sums.Messages)
		}
		return failure
	}
	return err
}

// watchEvery is how often the figures of a measurement are looked at while it runs, for intervals and for thresholds
// that can end it.
const watchEvery = 50 * time.Millisecond

// watch ends a measurement when a threshold fails, and reports its values in each interval. It sends them to the other
// process for both. stop ends the watch.
func (m *measuring) watch(prepared []*rdmacore.Measurement, cancel context.CancelCauseFunc) (stop func()) {
	reports := m.call.Interval > 0 && (m.from != nil || m.showsIntervals())
	if !reports && (m.call.Abort == nil || m.from == nil) && !m.other.watched() && !m.other.showsIntervals() {
		return func() {}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		var before []*record.Measure
		for ended := false; !ended; {
			select {
			case <-quit:
				ended = true // its last figures are reported, too
			case <-tick.C:
			}
			found, err := m.soFar(prepared)
			switch {
			case err != nil:
				cancel(err)
				return
			case found == nil || found[0].Took <= 0:
				continue
			}
			if m.other.showsIntervals() {
				m.other.sendRunning(found)
			}
			switch {
			case !ended && m.from != nil && m.call.Abort != nil && m.call.Abort(found):
				cancel(errAborted)
				return
			case reports && found[0].Took >= nextInterval(tookOf(before), m.call.Interval, ended):
				m.call.Measuring(m.continued(since(found, before)))
				before = found
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

// soFar are the figures of a measurement that runs; nil where this process does not have them all.
func (m *measuring) soFar(prepared []*rdmacore.Measurement) ([]*record.Measure, error) {
	results := make([]*rdmacore.MeasureResult, len(prepared))
	for i, each := range prepared {
		results[i] = each.SoFar()
	}
	if m.from == nil {
		if m.other.watched() {
			m.other.show(m.figures(rdmacore.MeasurePassive, results))
		}
		return m.remoteSoFar()
	}
	there := m.other.shown()
	if there == nil {
		if m.to == nil && m.args.Bidirectional {
			return nil, nil // half of the figures
		}
		return m.records(results, nil), nil
	}
	if err := m.checkReceived(there); err != nil {
		return nil, err
	}
	return m.records(results, there), nil
}

// tookOf is how long a measurement had run at its earlier figures.
func tookOf(found []*record.Measure) time.Duration {
	if len(found) == 0 {
		return 0
	}
	return found[0].Took
}

// nextInterval is when the next interval is reported: at its end, give or take half a look.  One that the end of
// the measurement cuts is reported when half of it is over.
func nextInterval(before, interval time.Duration, ended bool) time.Duration {
	if ended {
		return before + interval/2
	}
	return (before + watchEvery/2).Truncate(interval) + interval - watchEvery/2
}

// since is what each end has done since its earlier figures. The figures of an end in another process may still be the
// earlier ones; it has no part then.
func since(found, before []*record.Measure) []*record.Measure {
	var parts []*record.Measure
	for i, each := range found {
		var earlier *record.Measure
		if before != nil {
			earlier = before[i]
		}
		if part := each.Since(earlier); part.Took > 0 {
			parts = append(parts, part)
		}
	}
	return parts
}

// report passes on the results; there are the figures of an end that is not here.
func (m *measuring) report(results []*rdmacore.MeasureResult, there *figures) {
	list := m.records(results, there)
	for _, found := range list {
		m.sums.Messages += int(found.Messages)
		m.sums.Bytes += int(found.Bytes)
		m.sums.Errors += int(found.Errors)
		found.Cut = m.sums.Cut
		if tooFew := m.enough(found); tooFew != nil && !m.sums.Cut {
			found.TooFew = true
			m.tooFew = cmp.Or(m.tooFew, tooFew)
		}
	}
	m.call.Measured(m.continued(list))
	m.elapsed += list[0].Took
	if there != nil {
		m.sums.Verified += int(there.Verified)
	}
	for _, result := range results {
		if result == nil {
			continue // a threshold ended the measurement before this one began
		}
		for _, end := range result.Ends {
			m.sums.Verified += int(end.Verified)
		}
	}
}

// enough returns an error when an end has completed fewer messages of a size than min_messages, by default one.  A
// measurement without a message has no result, and a comparison of results must not take it for a good one.
func (m *measuring) enough(found *record.Measure) error {
	least := m.args.MinMessages.or(1)
	if found.Messages >= uint64(least) {
		return nil
	}
	what := "connections"
	if m.args.Kind.Value != rdmacore.MeasureConnect {
		what = "messages of " + quantity.Bytes(found.Size)
	}
	if m.part.stage != "" {
		what += " in stage " + m.part.stage
	}
	return &testbed.Failure{
		What:     fmt.Sprintf("%s completed %d %s", found.Role, found.Messages, what),
		Expected: fmt.Sprintf("at least %d", least), Got: strconv.FormatUint(found.Messages, 10),
		Hint: "measure longer or with a smaller depth; min_messages: 0 allows a size without messages",
	}
}

const (
	// Queue entries and receives that the ends need in addition to those of messages (rdmacore/measure/worker.h).
	controlEntries = 8
	// defaultDepth is the core's, of both queues.
	defaultDepth = 128
	// verifiedBytes bounds the memory of a measurement that verifies, where every message in flight has its own memory,
	// unless the scenario sets their number.
	verifiedBytes = 64 << 20
	// autoInline is requested for `inline: auto`.  From a device that refuses it less is requested.
	autoInline = 220
	// iWARP has no immediate data; its control messages have this many bytes inline instead (rdmacore/measure/wire.h).
	payload   = 12
	page      = 4096
	cacheLine = 64
)

// pairConfig is what the largest size needs; the device itself refuses what is too much for it.
func (m *measuring) pairConfig() (testbed.PairConfig, error) {
	largest := 0
	for i := range m.parts {
		largest = max(largest, m.parts[i].spec.Size)
	}
	inPayload := m.iwarp
	if inPayload {
		largest += payload
	}
	stride := max((largest+cacheLine-1)/cacheLine*cacheLine, cacheLine)
	slots := 1
	if m.args.Verify == verifyData || inPayload && m.parts[0].spec.Operation == rdmacore.OpSend {
		m.limitDepth(stride)
		sends, receives := m.depths()
		slots = max(sends, receives, 16) + controlEntries
	}
	if inPayload && m.other != nil && m.args.Bidirectional {
		slots = max(slots, 1+controlEntries)
	}
	if stride > math.MaxInt/2/slots {
		return testbed.PairConfig{}, &testbed.Failure{
			What: fmt.Sprintf("%d messages of %d bytes do not fit into memory", slots, largest),
		}
	}
	attr, err := m.here()[0].Device().Attr()
	if err != nil {
		return testbed.PairConfig{}, err
	}
	config := testbed.PairConfig{
		Bytes:  2 * max(slots*stride, page),
		Access: rdmacore.AccessLocalWrite | rdmacore.AccessRemoteWrite | rdmacore.AccessRemoteRead,
	}
	if attr.Atomic {
		config.Access |= rdmacore.AccessRemoteAtomic
	}
	spec := m.parts[0].spec
	sends, receives := m.depths()
	sends = max(sends, spec.SignalEvery, spec.PostList) + max(spec.PostList, 1)
	if receives == 0 {
		receives = max(defaultDepth, 2*spec.PostList, 4*spec.ReceivePostList)
	}
	config.QP = rdmacore.QPInitAttr{
		MaxSendWR: uint32(sends + controlEntries), MaxRecvWR: uint32(receives + controlEntries), MaxSendSGE: 1,
		MaxRecvSGE: 1,
	}
	if m.args.Builders.Value {
		config.QP.SendOps = buildersOf(spec.Operation, inPayload)
	}
	if m.args.Inline == inlineAuto {
		config.QP.MaxInlineData, config.FitInline = autoInline, true
	} else {
		config.QP.MaxInlineData = uint32(spec.Inline)
	}
	if inPayload {
		config.QP.MaxInlineData = max(config.QP.MaxInlineData, payload)
	}
	return config, nil
}

// buildersOf are the operations that a measurement posts: its own, and the control messages between the ends.
func buildersOf(operation rdmacore.Opcode, inPayload bool) rdmacore.SendOps {
	ops, _ := rdmacore.ParseSendOps(operation.String()) // opcodes and operations have the same names
	if inPayload {
		return ops | rdmacore.SendOpSend
	}
	return ops | rdmacore.SendOpSendWithImm
}

// limitDepth limits the messages in flight to what fits into memory, where the scenario does not set their number.
func (m *measuring) limitDepth(stride int) {
	fitting := min(max(verifiedBytes/stride, 4), defaultDepth)
	for i := range m.parts {
		spec := &m.parts[i].spec
		if spec.Kind == rdmacore.MeasureBandwidth && spec.Depth == 0 {
			spec.Depth = max(fitting, spec.PostList, spec.SignalEvery+spec.PostList)
		}
		if spec.Operation == rdmacore.OpSend && spec.ReceiveDepth == 0 {
			spec.ReceiveDepth = max(fitting, 2*spec.PostList, 4*spec.ReceivePostList)
		}
	}
}
