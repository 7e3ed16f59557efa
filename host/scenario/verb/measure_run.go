package verb

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"rdmarun/host/scenario/explain"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// measuring is a measure step while it runs.
type measuring struct {
	call     *Call
	args     *measureArguments
	from, to *testbed.Role
	specs    []rdmacore.MeasureSpec // of each size
	pairs    []*testbed.Pair        // of each queue pair; none for connections
	sums     measured
}

func measure(ctx context.Context, call *Call, args *measureArguments) (measured, error) {
	if refusal := args.check(); refusal != nil {
		return measured{}, refusal.failure()
	}
	m := &measuring{call: call, args: args}
	var err error
	if m.from, err = call.Testbed.Role(string(args.From)); err != nil {
		return measured{}, err
	}
	if m.to, err = call.Testbed.Role(string(args.To)); err != nil {
		return measured{}, err
	}
	for _, size := range args.sizes() {
		spec, refusal := args.spec(size)
		if refusal != nil {
			return measured{}, refusal.failure()
		}
		m.specs = append(m.specs, spec)
	}
	err = call.Testbed.Busy(ctx, "a measurement", m.run, m.from, m.to)
	return m.sums, err
}

// run measures each size on the same connections, which are as they were after each.
func (m *measuring) run(ctx context.Context) (err error) {
	if m.specs[0].Kind != rdmacore.MeasureConnect {
		if err := m.connect(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, m.disconnect()) }()
	}
	for i, spec := range m.specs {
		if m.call.Advance != nil {
			m.call.Advance(m.partText(spec), i+1, len(m.specs))
		}
		if err := m.size(ctx, spec); err != nil || m.sums.Cut {
			return err
		}
	}
	return nil
}

// partText is what is measured, "SEND 64 B".
func (m *measuring) partText(spec rdmacore.MeasureSpec) string {
	if spec.Kind == rdmacore.MeasureConnect {
		return "connections"
	}
	size := quantity.Size(int64(spec.Size))
	if !quantity.HasUnit(size) {
		size += " B"
	}
	return spec.Operation.String() + " " + size
}

func (m *measuring) connect(ctx context.Context) error {
	config, err := m.pairConfig()
	if err != nil {
		return err
	}
	for range max(m.args.QPs.Value, 1) {
		pair, err := testbed.NewPair(ctx, m.from, m.to, config)
		for errors.Is(err, syscall.EINVAL) && m.lessInline(&config) {
			pair, err = testbed.NewPair(ctx, m.from, m.to, config)
		}
		if err != nil {
			return errors.Join(err, m.disconnect())
		}
		m.pairs = append(m.pairs, pair)
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

// size measures one size on all queue pairs at once.
func (m *measuring) size(ctx context.Context, spec rdmacore.MeasureSpec) error {
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	prepared, err := m.prepare(spec)
	defer func() {
		for _, each := range prepared {
			each.Close()
		}
	}()
	if err != nil {
		return m.failure(err)
	}
	stop := m.watch(prepared, cancel)
	results, failures := make([]*rdmacore.MeasureResult, len(prepared)), make([]error, len(prepared))
	var group sync.WaitGroup
	for i, each := range prepared {
		group.Add(1)
		go func() {
			defer group.Done()
			if results[i], failures[i] = each.Run(running); failures[i] != nil {
				cancel(failures[i]) // the others would measure something else from here on
			}
		}()
	}
	m.call.Testbed.Clock().OnWall(group.Wait)
	stop()
	m.sums.Cut = errors.Is(context.Cause(running), errAborted)
	if err := firstFailure(failures); err != nil && !m.sums.Cut {
		return m.failure(err)
	}
	m.report(results)
	return nil
}

// errAborted is the cause of a context that a threshold has ended.
var errAborted = errors.New("a threshold with abort_on_fail did not hold")

// firstFailure is a failure that is no consequence of another.
func firstFailure(failures []error) error {
	var first error
	for _, err := range failures {
		if err != nil && (first == nil || errors.Is(first, context.Canceled) && !errors.Is(err, context.Canceled)) {
			first = err
		}
	}
	return first
}

func (m *measuring) prepare(spec rdmacore.MeasureSpec) ([]*rdmacore.Measurement, error) {
	if spec.Kind == rdmacore.MeasureConnect {
		provider, listen := m.from.Channel().Provider(), netip.AddrPortFrom(m.to.Address(), 0)
		prepared, err := rdmacore.NewMeasurement(spec,
			rdmacore.MeasureEnd{Role: rdmacore.MeasureActive, Provider: provider, Address: listen, Source: m.from.Source(m.to), CPUs: m.from.CPUs()},
			rdmacore.MeasureEnd{Role: rdmacore.MeasurePassive, Provider: provider, Address: listen, CPUs: m.to.CPUs()})
		if err != nil {
			return nil, err
		}
		return []*rdmacore.Measurement{prepared}, nil
	}
	var all []*rdmacore.Measurement
	for _, pair := range m.pairs {
		end := func(role rdmacore.MeasureRole, party *testbed.Role, here, there testbed.PairEnd) rdmacore.MeasureEnd {
			return rdmacore.MeasureEnd{
				Role: role, ID: here.ID, Memory: here.MR, CPUs: party.CPUs(),
				RemoteAddress: there.MR.Address(), RemoteLength: uint64(there.MR.Length()), RemoteKey: there.MR.RKey(),
			}
		}
		prepared, err := rdmacore.NewMeasurement(spec,
			end(rdmacore.MeasureActive, m.from, pair.Active, pair.Passive), end(rdmacore.MeasurePassive, m.to, pair.Passive, pair.Active))
		if err != nil {
			return all, err
		}
		all = append(all, prepared)
	}
	return all, nil
}

// failure says in words of the language what went wrong.
func (m *measuring) failure(err error) error {
	var knob *rdmacore.MeasureKnobError
	var failed *rdmacore.MeasureError
	switch {
	case errors.As(err, &knob):
		return refusalOf(err).failure()
	case errors.As(err, &failed):
		failure := &testbed.Failure{What: "the measurement failed", Expected: "success", Got: failed.Error(), Hint: failed.Why}
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

// abortEvery is how often a running measurement is looked at for thresholds that end it.
const abortEvery = 50 * time.Millisecond

// watch ends a measurement when a threshold wants it to; the function it returns ends the watch.
func (m *measuring) watch(prepared []*rdmacore.Measurement, cancel context.CancelCauseFunc) (stop func()) {
	if m.call.Abort == nil {
		return func() {}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(abortEvery)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
			}
			results := make([]*rdmacore.MeasureResult, len(prepared))
			for i, each := range prepared {
				results[i] = each.SoFar()
			}
			if found := m.records(results); found[0].Took > 0 && m.call.Abort(found) {
				cancel(errAborted)
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

// report passes on what was found.
func (m *measuring) report(results []*rdmacore.MeasureResult) {
	list := m.records(results)
	for _, found := range list {
		m.sums.Messages += int(found.Messages)
		m.sums.Bytes += int(found.Bytes)
		m.sums.Errors += int(found.Errors)
		found.Cut = m.sums.Cut
	}
	m.call.Measured(list)
	for _, result := range results {
		for _, end := range result.Ends {
			m.sums.Verified += int(end.Verified)
		}
	}
}
