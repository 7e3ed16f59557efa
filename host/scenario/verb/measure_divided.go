package verb

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// A measurement between roles of two processes has a native half in each. Both processes have evaluated the arguments.
// Each half also needs facts of the other one: the port where it listens, and the address and key of its memory. They
// exchange these before a size, and the results after it, each in its order:
//
//	from                                to
//	greeting                     -->
//	                             <--    greeting
//	                             <--    port, memory            for each queue pair
//	memory                       -->
//	prepared                     -->                            for each size
//	                             <--    prepared
//	    the messages that are measured, which begin with the first of `from`
//	over                         -->
//	                             <--    figures
//
// For connections `to` listens, so `from` prepares after it. A half that fails sends that instead of its next message,
// which ends the other half. Between `prepared` and `over` only the values so far are sent. Those of `to` are for a
// threshold or an interval of `from`. Those of `from` are sent if the process of `to` shows intervals.

// PeerConn exchanges messages with the process that plays the other role of a measurement.  Messages of one direction
// are delivered in order.
type PeerConn interface {
	Send(value any) error
	// Receive waits for the next message.  It fails when the other process is gone.
	Receive(ctx context.Context, into any) error
}

// halfMessage is a message between the halves.
type halfMessage struct {
	// Failed is why there is no other half any more.
	Failed *failed `json:"failed,omitempty"`
	// IWARP is the kind of the device; Watch means that `from` needs the figures so far, Intervals that `to` does.
	IWARP     bool `json:"iwarp,omitempty"`
	Watch     bool `json:"watch,omitempty"`
	Intervals bool `json:"intervals,omitempty"`
	// Port is where `to` listens, Memory what its peer may use.
	Port   uint16        `json:"port,omitempty"`
	Memory *remoteMemory `json:"memory,omitempty"`
	// Cut means, with `over`, that a threshold has ended the measurement.
	Cut bool `json:"cut,omitempty"`
	// SoFar and Found are the figures of `to`.
	SoFar *figures `json:"so_far,omitempty"`
	Found *figures `json:"found,omitempty"`
	// Running are the figures so far of `from`.
	Running *running `json:"running,omitempty"`
}

// running is what a measurement has found so far: of both ends, where both transmit.
type running struct {
	Active  figures               `json:"active"`
	Passive *figures              `json:"passive,omitempty"`
	Latency []record.Distribution `json:"latency,omitempty"`
}

// failed is a failure in a message.
type failed struct {
	What     string `json:"what"`
	Expected string `json:"expected,omitempty"`
	Got      string `json:"got,omitempty"`
	Hint     string `json:"hint,omitempty"`
	// Environment means that it is a fault of the surroundings.
	Environment bool `json:"environment,omitempty"`
}

func failedBy(err error) *failed {
	var failure *testbed.Failure
	var environment *testbed.EnvironmentError
	switch {
	case errors.As(err, &failure):
		return &failed{What: failure.What, Expected: failure.Expected, Got: failure.Got, Hint: failure.Hint}
	case errors.As(err, &environment):
		return &failed{What: err.Error(), Hint: environment.Hint(), Environment: true}
	}
	return &failed{What: err.Error()}
}

func (f *failed) failure(role string) error {
	if f.Environment {
		return &testbed.EnvironmentError{What: "role " + role, Err: errors.New(f.What)}
	}
	return &testbed.Failure{What: "role " + role + ": " + f.What, Expected: f.Expected, Got: f.Got, Hint: f.Hint}
}

// remoteMemory is what an end may use of its peer.
type remoteMemory struct {
	Address uint64 `json:"address"`
	Length  uint64 `json:"length"`
	Key     uint32 `json:"key"`
}

func memoryOf(end *testbed.PairEnd) remoteMemory {
	return remoteMemory{Address: end.MR.Address(), Length: uint64(end.MR.Length()), Key: end.MR.RKey()}
}

// exchange carries the messages between two halves of a measurement.
type exchange struct {
	peerConn PeerConn
	role     string // the one that is not here
	// ctx ends when the other half fails, or is there no more.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// outer is the step's.
	outer context.Context
	inbox chan halfMessage
	done  chan struct{}
	soFar atomic.Pointer[figures]
	// running are the last figures so far of `from`.
	running atomic.Pointer[running]
	// watch means that the other half needs figures of this one, intervals that it needs those of the measurement.
	watch, intervals bool
}

// meet begins to receive from the other half.
func meet(ctx context.Context, peerConn PeerConn, role string) *exchange {
	e := &exchange{peerConn: peerConn, role: role, outer: ctx, inbox: make(chan halfMessage), done: make(chan struct{})}
	e.ctx, e.cancel = context.WithCancelCause(ctx)
	go e.listen()
	return e
}

func (e *exchange) listen() {
	defer close(e.done)
	for {
		var got halfMessage
		err := e.peerConn.Receive(e.ctx, &got)
		if err == nil && got.Failed != nil {
			err = got.Failed.failure(e.role)
		}
		if err != nil {
			e.cancel(err)
			return
		}
		if got.SoFar != nil {
			e.soFar.Store(got.SoFar)
			continue
		}
		if got.Running != nil {
			e.running.Store(got.Running)
			continue
		}
		select {
		case e.inbox <- got:
		case <-e.ctx.Done():
			return
		}
	}
}

// receive is the next message of the other half.
func (e *exchange) receive(ctx context.Context) (halfMessage, error) {
	select {
	case got := <-e.inbox:
		return got, nil
	case <-ctx.Done():
		return halfMessage{}, context.Cause(ctx)
	}
}

func (e *exchange) send(what halfMessage) error {
	if err := e.peerConn.Send(what); err != nil {
		return &testbed.EnvironmentError{What: "send to the other end", Err: err}
	}
	return nil
}

// fail sends a failure of this half to the other one, unless that one has failed before; the step's end in any case.
func (e *exchange) fail(err error) {
	if e == nil || err == nil {
		return
	}
	if e.cancel(err); context.Cause(e.ctx) == err || e.outer.Err() != nil {
		_ = e.send(halfMessage{Failed: failedBy(err)}) // a half that misses it finds that this one is gone
	}
}

// finish ends the exchange.  The error is that of the half that failed first.
func (e *exchange) finish(err error) error {
	if e.fail(err); err != nil {
		err = context.Cause(e.ctx)
	}
	e.cancel(nil)
	<-e.done
	return err
}

// reasonTime is how long to wait for the reason of a failure that may be the consequence of another end's.
const reasonTime = time.Second

// reason is why the other half ended a connection, which it may send a moment later, or else err.
func (e *exchange) reason(err error) error {
	if e == nil {
		return err
	}
	select {
	case <-e.ctx.Done():
		return context.Cause(e.ctx)
	case <-time.After(reasonTime):
		return err
	}
}

// watched reports whether the other half needs figures.
func (e *exchange) watched() bool { return e != nil && e.watch }

// show shows the other half the figures so far.
func (e *exchange) show(soFar *figures) { _ = e.send(halfMessage{SoFar: soFar}) }

// shown are the figures so far of the other half; nil for none.
func (e *exchange) shown() *figures {
	if e == nil {
		return nil
	}
	return e.soFar.Load()
}

// showsIntervals reports whether the other half needs the figures so far of the measurement.
func (e *exchange) showsIntervals() bool { return e != nil && e.intervals }

// sendRunning sends the figures so far of the measurement to the other half.
func (e *exchange) sendRunning(found []*record.Measure) {
	all := make([]figures, len(found))
	for i, each := range found {
		all[i] = figures{Messages: each.Messages, Bytes: each.Bytes, Errors: each.Errors, Took: each.Took}
	}
	soFar := &running{Active: all[0], Latency: found[0].WithoutHistograms().Latency}
	if len(all) > 1 {
		soFar.Passive = &all[1]
	}
	_ = e.send(halfMessage{Running: soFar})
}

// remoteSoFar is the figures so far that the half of `from` has sent; nil for nothing yet.
func (m *measuring) remoteSoFar() ([]*record.Measure, error) {
	soFar := m.other.running.Load()
	if soFar == nil || (soFar.Passive != nil) != m.args.Bidirectional {
		return nil, nil
	}
	active := m.record(nil, &soFar.Active)
	active.Latency = soFar.Latency
	list := []*record.Measure{active}
	if soFar.Passive != nil {
		passive := m.record(nil, soFar.Passive)
		passive.Role, passive.Peer = passive.Peer, passive.Role
		list = append(list, passive)
	}
	for _, each := range list {
		each.Size = int64(m.part.spec.Size)
		if err := each.Check(); err != nil {
			return nil, m.untrue(err)
		}
	}
	return list, nil
}

// greet finds out what the other half's device is.
func (m *measuring) greet(ctx context.Context) error {
	for _, role := range m.here() {
		m.iwarp = m.iwarp || role.Device().IWARP()
	}
	if m.other == nil {
		return nil
	}
	err := m.other.send(halfMessage{
		IWARP: m.iwarp, Watch: (m.call.Abort != nil || m.call.Interval > 0) && m.args.Bidirectional && m.from != nil,
		Intervals: m.showsIntervals(),
	})
	if err != nil {
		return err
	}
	there, err := m.other.receive(ctx)
	m.iwarp, m.other.watch = m.iwarp || there.IWARP, there.Watch && m.to != nil && m.args.Bidirectional
	m.other.intervals = there.Intervals && m.from != nil
	return err
}

// showsIntervals reports whether this half shows intervals that another process measures.
func (m *measuring) showsIntervals() bool {
	return m.from == nil && m.call.Interval > 0 && m.call.ShowsIntervals
}

// pair makes a queue pair of each role, or of the one that is here.
func (m *measuring) pair(ctx context.Context, config testbed.PairConfig) (made measuredPair, err error) {
	switch {
	case m.other == nil:
		made.Pair, err = testbed.NewPair(ctx, m.from, m.to, config)
	case m.from != nil:
		err = m.dial(ctx, &made, config)
	default:
		err = m.accept(ctx, &made, config)
	}
	return made, err
}

func (m *measuring) dial(ctx context.Context, made *measuredPair, config testbed.PairConfig) error {
	there, err := m.other.receive(ctx)
	if err != nil {
		return err
	}
	if there.Memory == nil {
		return errIncomplete
	}
	made.there = *there.Memory
	address, _ := m.call.Testbed.AddressOf(string(m.args.To))
	if made.Pair, err = testbed.DialPair(ctx, m.from, netip.AddrPortFrom(address, there.Port), config); err != nil {
		return m.other.reason(err)
	}
	memory := memoryOf(&made.Active)
	return m.other.send(halfMessage{Memory: &memory})
}

func (m *measuring) accept(ctx context.Context, made *measuredPair, config testbed.PairConfig) (err error) {
	if made.Pair, err = testbed.ListenPair(ctx, m.to, config); err != nil {
		return err
	}
	memory := memoryOf(&made.Passive)
	if err = m.other.send(halfMessage{Port: made.Listens().Port(), Memory: &memory}); err != nil {
		return err
	}
	if err = made.Accept(ctx); err != nil {
		return err
	}
	there, err := m.other.receive(ctx)
	if err != nil {
		return err
	}
	if there.Memory == nil {
		return errIncomplete
	}
	made.there = *there.Memory
	return nil
}

// errIncomplete is the failure of a half when its peer does not send what it must.
var errIncomplete = errors.New("the other end did not send what this one needs")

// prepareBoth prepares the ends that are here, and waits until those elsewhere are.
func (m *measuring) prepareBoth(
	ctx context.Context, spec rdmacore.MeasureSpec,
) (all []*rdmacore.Measurement, err error) {
	if m.other == nil {
		return m.prepare(spec, 0)
	}
	connect := spec.Kind == rdmacore.MeasureConnect
	var there halfMessage
	// `to` is ready last, so that `from` can begin at once; but it listens before the other connects.
	if (m.from != nil) == connect {
		if there, err = m.other.receive(ctx); err != nil {
			return nil, err
		}
	}
	if all, err = m.prepare(spec, there.Port); err != nil {
		return all, err
	}
	if m.from != nil && connect {
		return all, nil
	}
	ready := halfMessage{}
	if connect {
		ready.Port = all[0].Listens().Port()
	}
	if err = m.other.send(ready); err == nil && m.from != nil {
		_, err = m.other.receive(ctx)
	}
	return all, err
}

// awaitOver ends the half of `to` when a threshold has ended that of `from`; over waits until that is over.
func (m *measuring) awaitOver(running context.Context, cancel context.CancelCauseFunc) (over func()) {
	if m.from != nil {
		return func() {}
	}
	received := make(chan struct{})
	go func() {
		defer close(received)
		if end, err := m.other.receive(running); err == nil && end.Cut {
			cancel(errAborted)
		}
	}()
	return func() { <-received }
}

// conclude gives and takes the figures of the end that is not here.
func (m *measuring) conclude(ctx context.Context, results []*rdmacore.MeasureResult) (there *figures, err error) {
	switch {
	case m.other == nil:
		return nil, nil
	case m.from == nil:
		return nil, m.other.send(halfMessage{Found: m.figures(rdmacore.MeasurePassive, results)})
	}
	if err = m.other.send(halfMessage{Cut: m.sums.Cut}); err != nil {
		return nil, err
	}
	end, err := m.other.receive(ctx)
	if err == nil && end.Found == nil {
		err = fmt.Errorf("%w: its figures", errIncomplete)
	}
	if err == nil {
		err = m.checkReceived(end.Found)
	}
	return end.Found, err
}

// checkReceived refuses figures of the other half that cannot be true.
func (m *measuring) checkReceived(there *figures) error {
	received := m.record(nil, there)
	received.Errors = max(received.Errors, there.Verified) // a number of messages, too
	if err := received.Check(); err != nil {
		return m.untrue(err)
	}
	return nil
}

func (m *measuring) untrue(err error) error {
	return &testbed.Failure{What: "the figures of role " + m.other.role + " cannot be true", Got: err.Error()}
}
