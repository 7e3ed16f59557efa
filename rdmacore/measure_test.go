package rdmacore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

var measuredQP = QPInitAttr{MaxSendWR: 64, MaxRecvWR: 64, MaxSendSGE: 1, MaxRecvSGE: 1, MaxInlineData: 64}

var measuredOperations = []Opcode{OpSend, OpRDMAWrite, OpRDMARead}

// measureEnds are both ends of a connection, the active one first.
func measureEnds(client, server *side) []MeasureEnd {
	end := func(role MeasureRole, here, there *side) MeasureEnd {
		return MeasureEnd{Role: role, ID: here.id, Memory: here.mr, RemoteAddress: there.mr.Address(),
			RemoteLength: uint64(there.mr.Length()), RemoteKey: there.mr.RKey()}
	}
	return []MeasureEnd{end(MeasureActive, client, server), end(MeasurePassive, server, client)}
}

// TestMeasureData runs everything on one connection: what one run left over would spoil the next.
func TestMeasureData(t *testing.T) {
	client, server := connectedWith(t, measuredQP, usualParam)
	ends := measureEnds(client, server)
	const messages = 200
	for _, kind := range []MeasureKind{MeasureLatency, MeasureBandwidth} {
		for _, operation := range measuredOperations {
			usual := MeasureSpec{Kind: kind, Operation: operation, Size: 64, Iterations: messages}
			verified, long, timed := usual, usual, usual
			verified.Verify = true
			long.Size, long.WarmupIterations = 5000, 5
			timed.Iterations, timed.Duration = 0, 20*time.Millisecond
			timed.SampleEvery = 5 * time.Millisecond
			if !onSoft("how long a message takes") {
				timed.Duration, timed.SampleEvery = 400*time.Millisecond, 50*time.Millisecond
			}
			rows := map[string]MeasureSpec{"usual": usual, "verified": verified, "long": long, "timed": timed}
			if kind == MeasureBandwidth {
				both, lists := usual, usual
				both.Bidirectional = true
				lists.PostList, lists.SignalEvery, lists.Depth = 4, 8, 16
				rows["both"], rows["lists"] = both, lists
			}
			for name, spec := range rows {
				t.Run(fmt.Sprintf("%s %s %s", kind, operation, name), func(t *testing.T) {
					result, err := runMeasurement(bounded(t), spec, ends...)
					must(t, err)
					checkMeasured(t, result)
				})
			}
		}
	}
	// The connection is as good as new.
	server.recv(t, 1, 0, 64)
	client.send(t, SendWR{WRID: 2, Opcode: OpSend, Flags: SendSignaled}, 0, 64)
	completion(t, client.id.SendCQ(), 2, WCSuccess)
	completion(t, server.id.RecvCQ(), 1, WCSuccess)
}

func checkMeasured(t *testing.T, result *MeasureResult) {
	t.Helper()
	spec := result.Spec
	want := spec.Iterations
	if spec.Bidirectional {
		want *= 2
	}
	if got := result.Messages(); got == 0 || want != 0 && got != want {
		t.Errorf("%d messages, want %d", got, want)
	}
	if result.Elapsed() <= 0 || result.BandwidthBitsPerSecond() <= 0 || result.MessagesPerSecond() <= 0 {
		t.Errorf("%s, %g bit/s, %g messages/s", result.Elapsed(), result.BandwidthBitsPerSecond(),
			result.MessagesPerSecond())
	}
	histogram := result.Histogram()
	if spec.Kind == MeasureLatency && (histogram.Count() != int64(result.Messages()) ||
		histogram.Percentile(50) <= 0 || histogram.Max() > result.Elapsed()) {
		t.Errorf("histogram of %d, median %s", histogram.Count(), histogram.Percentile(50))
	}
	if spec.Kind == MeasureBandwidth && histogram != nil {
		t.Error("bandwidth has a histogram")
	}
	if spec.Verify && result.Ends[0].Verified+result.Ends[1].Verified == 0 {
		t.Error("nothing was verified")
	}
	var sum uint64
	for _, interval := range result.Intervals() {
		sum += interval.Messages
	}
	if spec.SampleEvery != 0 && sum != result.Messages() {
		t.Errorf("intervals of %d messages together, want %d", sum, result.Messages())
	}
}

// TestMeasureAlone: what needs no passive end works without one.
func TestMeasureAlone(t *testing.T) {
	client, server := connectedWith(t, measuredQP, usualParam)
	active := measureEnds(client, server)[0]
	for _, spec := range []MeasureSpec{
		{Kind: MeasureBandwidth, Operation: OpRDMAWrite, Size: 100, Iterations: 100},
		{Kind: MeasureBandwidth, Operation: OpRDMARead, Size: 100, Iterations: 100, Outstanding: 2},
		{Kind: MeasureLatency, Operation: OpRDMARead, Size: 100, Iterations: 100},
	} {
		result, err := runMeasurement(bounded(t), spec, active)
		must(t, err)
		checkMeasured(t, result)
	}
}

// TestMeasureElsewhere has each end as a measurement of its own, as in two processes.
func TestMeasureElsewhere(t *testing.T) {
	client, server := connectedWith(t, measuredQP, usualParam)
	ends := measureEnds(client, server)
	for _, operation := range measuredOperations[:2] {
		spec := MeasureSpec{Kind: MeasureLatency, Operation: operation, Size: 8, Duration: 5 * time.Millisecond,
			Verify: true, Elsewhere: true}
		var both [2]*Measurement
		for i := range both {
			var err error
			both[i], err = NewMeasurement(spec, ends[i])
			must(t, err)
			defer both[i].Close()
		}
		passive := make(chan error, 1)
		go func() {
			_, err := both[1].Run(bounded(t))
			passive <- err
		}()
		result, err := both[0].Run(bounded(t))
		must(t, err)
		must(t, <-passive)
		if result.Histogram().Count() == 0 {
			t.Error("no samples")
		}
		_, err = both[0].Run(bounded(t))
		refused(t, err, syscall.EALREADY)
	}
}

func TestMeasureConnect(t *testing.T) {
	p := opened(t)
	before := p.Live().Total()
	ends := []MeasureEnd{{Role: MeasurePassive, Provider: p, Address: here(t, 0)},
		{Role: MeasureActive, Provider: p, Address: here(t, 0)}}
	spec := MeasureSpec{Kind: MeasureConnect, Iterations: 20, WarmupIterations: 2, InFlight: 4}
	result, err := runMeasurement(bounded(t), spec, ends...)
	must(t, err)
	if result.Messages() != 20 || result.MessagesPerSecond() <= 0 || result.BandwidthBitsPerSecond() != 0 ||
		result.Ends[0].ReceivedMessages != 22 {
		t.Errorf("%d connections, %d accepted", result.Messages(), result.Ends[0].ReceivedMessages)
	}
	if len(result.Histograms) != len(measureStepNames.rows) {
		t.Errorf("%d histograms", len(result.Histograms))
	}
	for step, histogram := range result.Histograms {
		if histogram.Count() != 20 || histogram.Max() > result.Histogram().Max() {
			t.Errorf("%s: %d samples, the longest %s", step, histogram.Count(), histogram.Max())
		}
	}
	if len(result.StepTook) != 0 {
		t.Errorf("not in lockstep, and still %v", result.StepTook)
	}
	spec.Lockstep = true
	result, err = runMeasurement(bounded(t), spec, ends...)
	must(t, err)
	if len(result.StepTook) != len(measureStepNames.rows) || result.Histogram().Count() != 20 {
		t.Errorf("in lockstep: %v, %d connections", result.StepTook, result.Histogram().Count())
	}
	for step, took := range result.StepTook {
		if took < result.Histograms[step].Max() || took > result.StepTook[StepTotal] {
			t.Errorf(
				"%s of all took %s, of one %s, everything %s", step, took, result.Histograms[step].Max(),
				result.StepTook[StepTotal],
			)
		}
	}
	spec = MeasureSpec{Kind: MeasureConnect, Duration: time.Hour}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err = runMeasurement(ctx, spec, ends...)
	refused(t, err, context.DeadlineExceeded)

	m, err := NewMeasurement(MeasureSpec{Kind: MeasureConnect, Iterations: 1}, ends...)
	must(t, err)
	nobody := m.Listens()
	m.Close()
	_, err = runMeasurement(bounded(t), MeasureSpec{Kind: MeasureConnect, Iterations: 3, Elsewhere: true},
		MeasureEnd{Role: MeasureActive, Provider: p, Address: nobody})
	var failure *MeasureError
	if !errors.As(err, &failure) || failure.Event != EventRejected || failure.Step != StepConnect ||
		!strings.Contains(err.Error(), "REJECTED with status") {
		t.Errorf("no process listens: %v", err)
	}
	if now := p.Live().Total(); now != before {
		t.Errorf("%s objects left", p.Live())
	}
}

// TestMeasureConnectWithoutRTU counts a connection at both ends when its RTU was lost.
func TestMeasureConnectWithoutRTU(t *testing.T) {
	softOnly(t, "faults")
	p := opened(t)
	rule := fault(t, p, Fault{CM: true, Message: MessageRTU, Count: 1})
	ends := []MeasureEnd{{Role: MeasurePassive, Provider: p, Address: here(t, 0)},
		{Role: MeasureActive, Provider: p, Address: here(t, 0)}}
	result, err := runMeasurement(bounded(t), MeasureSpec{Kind: MeasureConnect, Iterations: 20, InFlight: 4}, ends...)
	must(t, err)
	lost, err := rule.Heal()
	must(t, err)
	if lost != 1 || result.Messages() != 20 || result.Ends[0].ReceivedMessages != 20 {
		t.Errorf("%d RTUs lost: %d connections, %d accepted", lost, result.Messages(), result.Ends[0].ReceivedMessages)
	}
}

func TestMeasureCancel(t *testing.T) {
	for _, kind := range []MeasureKind{MeasureLatency, MeasureBandwidth} {
		for _, operation := range measuredOperations {
			client, server := connectedWith(t, measuredQP, usualParam)
			spec := MeasureSpec{Kind: kind, Operation: operation, Size: 64, Duration: time.Hour}
			m, err := NewMeasurement(spec, measureEnds(client, server)...)
			must(t, err)
			ctx, cancel := context.WithCancel(context.Background())
			watched := make(chan struct{})
			go func() {
				defer close(watched)
				for i := 0; i < 10_000 && m.SoFar().Messages() == 0; i++ {
					time.Sleep(time.Millisecond)
				}
				cancel()
			}()
			result, err := m.Run(ctx)
			refused(t, err, context.Canceled)
			<-watched
			m.Close()
			if result == nil || result.Messages() == 0 {
				t.Error("no result of what was done")
			}
			_, err = runMeasurement(ctx, spec, measureEnds(client, server)...)
			refused(t, err, context.Canceled)
		}
	}
}

// TestMeasureErrors: the peer is not there, not as it should be, or goes in the middle.
func TestMeasureErrors(t *testing.T) {
	param := usualParam
	param.RNRRetryCount, param.RetryCount = 0, 1
	latency := MeasureSpec{Kind: MeasureLatency, Operation: OpSend, Size: 64, Iterations: 1 << 40}
	write := MeasureSpec{Kind: MeasureBandwidth, Operation: OpRDMAWrite, Size: 64, Duration: time.Hour}
	for name, row := range map[string]struct {
		spec    MeasureSpec
		disturb func(t *testing.T, ends []MeasureEnd, server *side) []MeasureEnd
		want    WCStatus
	}{
		"no receives": {latency, func(t *testing.T, ends []MeasureEnd, server *side) []MeasureEnd {
			return ends[:1]
		}, WCRNRRetryExcErr},
		"wrong key": {write, func(t *testing.T, ends []MeasureEnd, server *side) []MeasureEnd {
			ends[0].RemoteKey ^= 0x100
			return ends
		}, WCRemAccessErr},
		"peer destroyed": {write, func(t *testing.T, ends []MeasureEnd, server *side) []MeasureEnd {
			time.AfterFunc(10*time.Millisecond, func() { server.destroy(t) })
			return ends[:1]
		}, WCRetryExcErr},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := connectedWith(t, measuredQP, param)
			ends := measureEnds(client, server)
			row.spec.Elsewhere = name == "no receives"
			ends = row.disturb(t, ends, server)
			result, err := runMeasurement(bounded(t), row.spec, ends...)
			var failure *MeasureError
			if !errors.As(err, &failure) || failure.Status != row.want || failure.Role != MeasureActive ||
				failure.Why == "" || !strings.Contains(err.Error(), row.want.String()) {
				t.Errorf("error %v, want %s", err, row.want)
			}
			refused(t, err, syscall.EIO)
			if result == nil {
				t.Error("no result of what was done")
			}
		})
	}
}

func TestMeasureRefusals(t *testing.T) {
	client, server := connectedWith(t, measuredQP, usualParam)
	ends := measureEnds(client, server)
	good := MeasureSpec{Kind: MeasureBandwidth, Operation: OpSend, Size: 8, Iterations: 1}
	for name, row := range map[string]struct {
		change func(spec *MeasureSpec, ends []MeasureEnd) []MeasureEnd
		want   error
		knob   string
	}{
		"negative": {
			func(s *MeasureSpec, e []MeasureEnd) []MeasureEnd { s.Depth = -1; return e }, syscall.EINVAL, "Depth",
		},
		"past": {func(s *MeasureSpec, e []MeasureEnd) []MeasureEnd { s.Gap = -1; return e }, syscall.EINVAL, "Gap"},
		"no kind": {
			func(s *MeasureSpec, e []MeasureEnd) []MeasureEnd { s.Kind = 0; return e }, syscall.EINVAL, "Kind",
		},
		"immediate": {func(s *MeasureSpec, e []MeasureEnd) []MeasureEnd { s.Operation = OpSendWithImm; return e },
			syscall.EOPNOTSUPP, "Operation"},
		"no meaning": {
			func(s *MeasureSpec, e []MeasureEnd) []MeasureEnd { s.InFlight = 2; return e }, syscall.EINVAL, "InFlight",
		},
		"too deep": {
			func(s *MeasureSpec, e []MeasureEnd) []MeasureEnd { s.Depth = 1 << 20; return e }, syscall.EINVAL, "Depth",
		},
		"one end": {func(s *MeasureSpec, e []MeasureEnd) []MeasureEnd { return e[:1] }, syscall.EINVAL, "ends"},
		"no end":  {func(s *MeasureSpec, e []MeasureEnd) []MeasureEnd { return nil }, syscall.EINVAL, "ends"},
		"both active": {func(s *MeasureSpec, e []MeasureEnd) []MeasureEnd { e[1].Role = MeasureActive; return e },
			syscall.EINVAL, "Role"},
		"no memory": {
			func(s *MeasureSpec, e []MeasureEnd) []MeasureEnd { e[1].Memory = nil; return e }, syscall.EBADF, "",
		},
		"no id": {func(s *MeasureSpec, e []MeasureEnd) []MeasureEnd { e[0].ID = nil; return e }, syscall.EBADF, ""},
		"outside": {
			func(s *MeasureSpec, e []MeasureEnd) []MeasureEnd { e[0].Offset = 1 << 40; return e }, syscall.EFAULT,
			"Length",
		},
		"too large": {
			func(s *MeasureSpec, e []MeasureEnd) []MeasureEnd { s.Size = bufferSize; return e }, syscall.EINVAL,
			"Length",
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := good
			given := row.change(&spec, append([]MeasureEnd(nil), ends...))
			_, err := runMeasurement(bounded(t), spec, given...)
			refused(t, err, row.want)
			var knob *MeasureKnobError
			if errors.As(err, &knob) != (row.knob != "") || knob != nil && knob.Knob != row.knob {
				t.Errorf("error %v, want one about %q", err, row.knob)
			}
		})
	}
	var none *Measurement
	none.Close()
	_, err := none.Run(bounded(t))
	refused(t, err, syscall.EBADF)
}

// TestMeasureVirtualClock: a virtual clock advances with wall-clock time meanwhile. So a sender that meets no receives
// succeeds in the end, and a deadline of that clock expires.
func TestMeasureVirtualClock(t *testing.T) {
	p, client, server := virtualPair(t, 7)
	p.Clock().Enter()
	defer p.Clock().Leave()
	ends := measureEnds(client, server)
	spec := MeasureSpec{Kind: MeasureLatency, Operation: OpSend, Size: 8, Iterations: 10}
	result, err := runMeasurement(bounded(t), spec, ends...)
	must(t, err)
	checkMeasured(t, result)

	// The first message comes before there is a receive; the RNR timer sends it again.
	spec.Elsewhere = true
	early, err := NewMeasurement(spec, ends[0])
	must(t, err)
	defer early.Close()
	done := make(chan error, 1)
	go func() {
		_, err := early.Run(bounded(t))
		done <- err
	}()
	time.Sleep(20 * time.Millisecond)
	began := p.Clock().Now()
	_, err = runMeasurement(bounded(t), spec, ends[1])
	must(t, err)
	must(t, <-done)
	if p.Clock().Now() == began {
		t.Error("no time has passed")
	}

	_, err = runMeasurement(bounded(t), MeasureSpec{Kind: MeasureConnect, Iterations: 5},
		MeasureEnd{Role: MeasureActive, Provider: p, Address: here(t, 0)},
		MeasureEnd{Role: MeasurePassive, Provider: p, Address: here(t, 0)})
	must(t, err)

	ctx, cancel := p.Clock().WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err = runMeasurement(ctx, MeasureSpec{Kind: MeasureBandwidth, Operation: OpRDMAWrite, Size: 8,
		Duration: time.Hour}, ends[0])
	refused(t, err, context.DeadlineExceeded)
}

// TestMeasureSoFar looks at a measurement while it runs: counts only grow, and are those of its end then.
func TestMeasureSoFar(t *testing.T) {
	client, server := connectedWith(t, measuredQP, usualParam)
	for _, kind := range []MeasureKind{MeasureLatency, MeasureBandwidth} {
		m, err := NewMeasurement(MeasureSpec{Kind: kind, Operation: OpSend, Size: 8, Duration: time.Hour},
			measureEnds(client, server)...)
		must(t, err)
		ctx, cancel := context.WithCancel(bounded(t))
		outcome := make(chan *MeasureResult)
		go func() {
			result, _ := m.Run(ctx) // it was stopped
			outcome <- result
		}()
		var last uint64
		for last < 1000 && ctx.Err() == nil {
			soFar := m.SoFar()
			now := soFar.Ends[0].Messages
			if now < last || kind == MeasureLatency && uint64(soFar.Histogram().Count()) < last {
				t.Errorf("%s: %d messages, %d samples after %d", kind, now, soFar.Histogram().Count(), last)
			}
			last = now
		}
		cancel()
		result := <-outcome
		if result == nil || result.Ends[0].Messages < last || result.Ends[0].Elapsed <= 0 {
			t.Errorf("%s: %+v, %d before", kind, result, last)
		}
		m.Close()
		client, server = connectedWith(t, measuredQP, usualParam) // one that was stopped is of no further use
	}
}

// TestMeasureAtomics measures them where the device has them, and is refused where it has not.
func TestMeasureAtomics(t *testing.T) {
	client, server := connectedWith(t, measuredQP, usualParam)
	attr, err := client.id.Device().Attr()
	must(t, err)
	for _, s := range []*side{client, server} {
		if attr.Atomic {
			s.mr, err = s.pd.RegMR(s.memory, 0, bufferSize, allAccess|AccessRemoteAtomic)
			must(t, err)
			atEnd(t, s.mr.Dereg)
		}
	}
	active := measureEnds(client, server)[0]
	for _, operation := range []Opcode{OpAtomicFetchAndAdd, OpAtomicCmpAndSwp} {
		for _, kind := range []MeasureKind{MeasureLatency, MeasureBandwidth} {
			spec := MeasureSpec{Kind: kind, Operation: operation, Size: 8, Iterations: 50}
			for _, wrong := range []MeasureSpec{{Size: 16}, {Size: 8, Verify: true}, {Size: 8, Inline: 8}} {
				wrong.Kind, wrong.Operation, wrong.Iterations = kind, operation, 50
				refused(t, wrong.Check(), syscall.EINVAL)
			}
			if !attr.Atomic {
				_, err := runMeasurement(bounded(t), spec, active)
				refused(t, err, syscall.EOPNOTSUPP)
				continue
			}
			before := make([]byte, bufferSize)
			copy(before, server.memory.Bytes())
			result, err := runMeasurement(bounded(t), spec, active)
			must(t, err)
			checkMeasured(t, result)
			if operation == OpAtomicFetchAndAdd && bytes.Equal(before, server.memory.Bytes()[:bufferSize]) {
				t.Errorf("%s %s has changed nothing", kind, operation)
			}
		}
	}
}
