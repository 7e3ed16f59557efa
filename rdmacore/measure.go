package rdmacore

// #include "measure/measure.h"
// #include "core/core.h"
import "C"

import (
	"context"
	"net/netip"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// MeasureKind is what a measurement finds out.
type MeasureKind uint32

// MeasureRole is whether an end begins or answers.
type MeasureRole uint32

// MeasureCompletion is how an end waits for completions.
type MeasureCompletion uint32

// Kinds, roles and ways to wait; measure/measure.h defines them.
const (
	// MeasureLatency is one message at a time.  A sample of SEND and RDMA_WRITE is half of a round trip,
	// of RDMA_READ and atomics a whole one.
	MeasureLatency MeasureKind = C.CORE_MEASURE_LATENCY
	// MeasureBandwidth is as many messages as the knobs allow.
	MeasureBandwidth MeasureKind = C.CORE_MEASURE_BANDWIDTH
	// MeasureConnect is connections made and ended, each step timed.
	MeasureConnect MeasureKind = C.CORE_MEASURE_CONNECT

	// MeasureActive begins: it sends, writes, reads, connects.
	MeasureActive MeasureRole = C.CORE_MEASURE_ACTIVE
	// MeasurePassive answers, or is the other direction of a bidirectional measurement.
	MeasurePassive MeasureRole = C.CORE_MEASURE_PASSIVE

	// MeasurePoll polls without end, as fast as it can.
	MeasurePoll MeasureCompletion = C.CORE_MEASURE_POLL
	// MeasureEvent sleeps on the completion channel.
	MeasureEvent MeasureCompletion = C.CORE_MEASURE_EVENT
)

// InlineAuto sends inline every message that the queue pair takes inline.
const InlineAuto = -1

// MeasureSpec says what to measure. The zero value of a knob is its default. A knob that has no meaning for the kind
// and operation must be zero. Otherwise the error is EINVAL with the knob's name: nothing is accepted and then
// ignored.
type MeasureSpec struct {
	Kind          MeasureKind
	Operation     Opcode // OpSend, OpRDMAWrite, OpRDMARead, OpAtomic*; latency and bandwidth
	Bidirectional bool   // bandwidth: both ends transmit
	Size          int    // bytes of a message

	// Exactly one of the two.  Messages of each direction, round trips or connections.
	Iterations uint64
	Duration   time.Duration
	// Before the timed part, either or both.
	WarmupIterations uint64
	WarmupDuration   time.Duration

	Depth           int // bandwidth: requests in flight; default 128 or what the queue holds
	ReceiveDepth    int // SEND: receives posted; default 128 (latency 16) or what the queue holds
	PostList        int // bandwidth: requests a post; default 1
	ReceivePostList int // SEND bandwidth: receives a post; default 1
	SignalEvery     int // every so many requests ask for a completion; default 1
	PollBatch       int // completions a poll, 64 at most; default 16, latency 1
	Inline          int // messages up to this size go inline; or InlineAuto
	Completion      MeasureCompletion
	Outstanding     int // READ and atomic bandwidth: requests in flight, if fewer than Depth

	// Verify makes receivers check the contents. In latency this is done between samples. In bandwidth it is part
	// of the time, except for RDMA_WRITE: its target checks its memory at the end.
	Verify bool

	Gap          time.Duration // latency: pause between round trips
	RateBits     uint64        // bandwidth: bits a second of each direction at most
	RateMessages uint64        // or messages a second
	Burst        int           // with a rate: messages that may go at once; default PostList

	// SampleEvery remembers how much was done in each such interval; 0 does not.  When SamplesMax
	// (default 1024) are used up, pairs of them become one.
	SampleEvery time.Duration
	SamplesMax  int

	HistogramDigits int           // latency, connect: significant digits, 1 to 5; default 3
	HistogramMax    time.Duration // latency, connect: default one minute; longer ones count as that

	InFlight  int           // connect: connections under way at once; default 1
	ErrorsMax int           // connect: connections that may fail before the measurement does
	Timeout   time.Duration // connect: for resolving an address and a route each; default 2 s
	// Lockstep: connections under way take each step together, all of them one before any the next, as in
	// cmtime.  MeasureResult.StepTook has the time.
	Lockstep bool

	// Elsewhere: the other end runs in another process, with the same spec.  Both are prepared
	// (NewMeasurement) before either runs.
	Elsewhere bool
}

// MeasureEnd is one end of a measurement in this process. For latency and bandwidth it is a connected queue pair, with
// its completion queues to itself, and registered memory. The first half of the memory is sent from, and read by the
// peer. The second half is received into, and written by the peer.
type MeasureEnd struct {
	Role MeasureRole

	ID     *ID // latency, bandwidth
	Memory *MR
	Offset int // of what is used of Memory
	Length int // 0: all of it from Offset
	// RDMA_WRITE and RDMA_READ: the memory that the peer uses (its Address plus Offset, and its Length)
	// and its key, which must allow what is done.
	RemoteAddress uint64
	RemoteLength  uint64
	RemoteKey     uint32

	Provider *Provider // connect
	// Connect.  Passive: where to listen, port 0 for any.  Active: where to connect to, port 0 for the
	// passive end's of the same measurement.
	Address netip.AddrPort
	Source  netip.AddrPort // active; may be zero
	// CPUs are where the end's thread may run; none: anywhere.
	CPUs []int
}

// wallStep is how often a virtual clock that follows the wall is moved.
const wallStep = time.Millisecond

// OnWall runs f, in which the caller, an actor, takes wall-clock time: native threads work for it.
// Meanwhile a virtual clock runs with the wall clock, and ends the waits of other actors as usual.
func (c *Clock) OnWall(f func()) {
	if c.virtual == nil {
		f()
		return
	}
	defer c.virtual.followWall()()
	c.virtual.goOnWall(1)
	defer c.virtual.goOnWall(-1)
	f()
}

func (c *virtualClock) goOnWall(change int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onWall += change
	c.calmer.Broadcast()
}

// followWall lets the virtual clocks of the ends run with the wall clock, until the function it returns is called.
// Native threads take wall-clock time, and they wait for timers of the provider (RNR, CM retries).
func (m *Measurement) followWall() (stop func()) {
	var leaves []func()
	for _, clock := range m.clocks {
		if clock.virtual != nil {
			leaves = append(leaves, clock.virtual.followWall())
		}
	}
	return func() {
		for _, leave := range leaves {
			leave()
		}
	}
}

// following is a virtual clock that runs with the wall clock, once for any number of measurements.
type following struct {
	mu         sync.Mutex
	followers  int
	quit, done chan struct{}
}

func (c *virtualClock) followWall() (leave func()) {
	f := &c.following
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.followers++; f.followers == 1 {
		f.quit, f.done = make(chan struct{}), make(chan struct{})
		go c.runWithWall(f.quit, f.done)
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.followers--; f.followers == 0 {
			close(f.quit)
			<-f.done
		}
	}
}

func (c *virtualClock) runWithWall(quit, done chan struct{}) {
	defer close(done)
	ticker := time.NewTicker(wallStep)
	defer ticker.Stop()
	for last := time.Now(); ; {
		select {
		case <-quit:
			return
		case now := <-ticker.C:
			c.advanceBy(now.Sub(last))
			last = now
		}
	}
}

// advanceBy moves the clock on, running timers and ending contexts that are due on the way.
func (c *virtualClock) advanceBy(step time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reach(c.now() + step)
	for c.releaseFirst() { // the measurement acts on the wall, and so do they meanwhile
	}
}

// Measurement is a measurement that is prepared: its receives are posted, it listens.
type Measurement struct {
	c      *C.struct_core_measure // nil once closed
	spec   MeasureSpec
	ends   []MeasureEnd
	clocks []*Clock // of the ends' providers, each once
	ran    bool
}

// NewMeasurement checks a measurement of one or two ends and prepares them, without starting.  READ and atomics and
// unverified, unidirectional WRITE bandwidth need the active end only.  The caller closes it.
func NewMeasurement(spec MeasureSpec, ends ...MeasureEnd) (*Measurement, error) {
	cspec, err := spec.native()
	if err != nil {
		return nil, err
	}
	if len(ends) < 1 || len(ends) > C.CORE_MEASURE_ENDS {
		return nil, knobError("ends", syscall.EINVAL, "one or two, not %d", len(ends))
	}
	m := &Measurement{spec: spec}
	var cends [C.CORE_MEASURE_ENDS]C.struct_core_measure_end
	for i := range ends {
		if cends[i], err = ends[i].native(&spec); err != nil {
			m.release()
			return nil, err
		}
		m.hold(ends[i])
	}
	var refusal C.struct_core_measure_refusal
	if result := C.core_measure_create(&cspec, &cends[0], C.uint32_t(len(ends)), &m.c, &refusal); result < 0 {
		m.release()
		return nil, refusedBy(int(result), &refusal)
	}
	if result := C.core_measure_prepare(m.c); result < 0 {
		defer m.Close()
		return nil, m.failure(int(result))
	}
	return m, nil
}

// hold keeps the memory of an end mapped while native threads use it.
func (m *Measurement) hold(end MeasureEnd) {
	if end.Memory != nil {
		end.Memory.memory.Retain()
	}
	m.ends = append(m.ends, end)
	clock := end.provider(m.spec.Kind).clock
	for _, known := range m.clocks {
		if known == clock {
			return
		}
	}
	m.clocks = append(m.clocks, clock)
}

func (m *Measurement) release() {
	for _, end := range m.ends {
		if end.Memory != nil {
			end.Memory.memory.Release()
		}
	}
	m.ends = nil
}

// Listens is the address at which the passive end of kind connect listens, zero if there is none.
func (m *Measurement) Listens() netip.AddrPort {
	if m == nil || m.c == nil {
		return netip.AddrPort{}
	}
	for i, end := range m.ends {
		if end.Role == MeasurePassive {
			var c C.struct_core_address
			C.core_measure_listens(m.c, C.uint32_t(i), &c)
			return fromCAddress(&c)
		}
	}
	return netip.AddrPort{}
}

// Run runs the measurement on native threads, once, and returns what came of it.
//
// After success nothing is left in the queues.  After an error, which the result then goes with when
// there is one, requests may be: the queue pairs are of no further use.  The error wraps ctx.Err() when
// ctx ended it.  The objects of the ends must not be destroyed meanwhile.
//
// Time is always wall-clock time.  On a virtual clock, the clock runs with the wall for as long as the
// measurement does.
func (m *Measurement) Run(ctx context.Context) (*MeasureResult, error) {
	if m == nil || m.c == nil {
		return nil, closed(measureOp, "measurement")
	}
	if m.ran {
		return nil, fail(measureOp, syscall.EALREADY, "a measurement runs once")
	}
	if ctx.Err() != nil {
		return nil, cancelled(ctx, measureOp, "the end of the measurement")
	}
	m.ran = true
	waiter, err := newFDWaiter(&Clock{began: time.Now()}, int(C.core_measure_fd(m.c)), "the end of a measurement")
	if err != nil {
		return nil, err
	}
	defer waiter.close()
	stop := m.followWall()
	started := C.core_measure_start(m.c)
	finished := func() bool { return bool(C.core_measure_finished(m.c)) }
	if !waiter.wait(ctx, finished) {
		C.core_measure_cancel(m.c)
		waiter.wait(context.Background(), finished) // the loops look at the flag
	}
	stop()
	result := int(C.core_measure_join(m.c))
	outcome := m.outcome()
	switch {
	case started < 0:
		return nil, fail(measureOp, syscall.Errno(-started), "no thread for an end; see ulimit -u")
	case result == -int(syscall.ECANCELED) && ctx.Err() != nil:
		return outcome, cancelled(ctx, measureOp, "the end of the measurement")
	case result < 0:
		return outcome, m.failure(result)
	}
	return outcome, nil
}

// Close frees what the measurement holds; what runs in another goroutine must have returned.  Closing twice
// does nothing.  A measurement that never ran leaves its receives posted.
func (m *Measurement) Close() {
	if m == nil || m.c == nil {
		return
	}
	C.core_measure_free(m.c)
	m.c = nil
	m.release()
}

// failure is the error of the end that result is of; a flush only if no end has a better reason.
func (m *Measurement) failure(result int) error {
	var worst *MeasureError
	for i := range m.ends {
		err := m.endError(i)
		if err == nil || int(err.Errno) != -result {
			continue
		}
		if worst == nil || worst.Status == WCWRFlushErr && err.Status != WCWRFlushErr {
			worst = err
		}
	}
	if worst == nil {
		return check(measureOp, result)
	}
	return worst
}

// SoFar is what a measurement, which Run runs in another goroutine, has done in the timed part until now. It has the
// messages, bytes and times of the ends, and histograms. Before the timed part they are empty. The measurement must
// not be closed meanwhile.
func (m *Measurement) SoFar() *MeasureResult {
	r := &MeasureResult{Spec: m.spec, Histograms: make(map[MeasureStep]*Histogram)}
	for i, end := range m.ends {
		var c C.struct_core_measure_result
		C.core_measure_peek(m.c, C.uint32_t(i), &c)
		r.Ends = append(r.Ends, MeasureEndResult{
			Role: end.Role, Messages: uint64(c.messages), Bytes: uint64(c.bytes),
			Begin: time.Duration(c.begin_ns), Elapsed: time.Duration(c.elapsed_ns),
		})
		for _, row := range measureStepNames.rows {
			living := C.core_measure_histogram(m.c, C.uint32_t(i), C.uint32_t(row.value))
			if living == nil {
				continue
			}
			var copied C.struct_core_histogram
			if C.core_histogram_copy(&copied, living) == 0 {
				r.Histograms[row.value] = fromCHistogram(&copied)
				C.core_histogram_free(&copied)
			}
		}
	}
	return r
}

// The Go twins of C structs cross the language border as they are.  Where a size or an offset differs,
// the constant below is a negative number of an unsigned type, which does not compile.

const (
	_ = -(unsafe.Sizeof(SendWR{}) ^ C.sizeof_struct_core_send_wr)
	_ = -(unsafe.Offsetof(SendWR{}.Opcode) ^ unsafe.Offsetof(C.struct_core_send_wr{}.opcode))
	_ = -(unsafe.Offsetof(SendWR{}.Flags) ^ unsafe.Offsetof(C.struct_core_send_wr{}.flags))
	_ = -(unsafe.Offsetof(SendWR{}.FirstSGE) ^ unsafe.Offsetof(C.struct_core_send_wr{}.first_sge))
	_ = -(unsafe.Offsetof(SendWR{}.NumSGE) ^ unsafe.Offsetof(C.struct_core_send_wr{}.num_sge))
	_ = -(unsafe.Offsetof(SendWR{}.ImmData) ^ unsafe.Offsetof(C.struct_core_send_wr{}.imm_data))
	_ = -(unsafe.Offsetof(SendWR{}.RKey) ^ unsafe.Offsetof(C.struct_core_send_wr{}.rkey))
	_ = -(unsafe.Offsetof(SendWR{}.RemoteAddress) ^ unsafe.Offsetof(C.struct_core_send_wr{}.remote_address))
	_ = -(unsafe.Offsetof(SendWR{}.CompareAdd) ^ unsafe.Offsetof(C.struct_core_send_wr{}.compare_add))
	_ = -(unsafe.Offsetof(SendWR{}.Swap) ^ unsafe.Offsetof(C.struct_core_send_wr{}.swap))
	_ = -(unsafe.Offsetof(SendWR{}.AH) ^ unsafe.Offsetof(C.struct_core_send_wr{}.ah))
	_ = -(unsafe.Offsetof(SendWR{}.RemoteQPN) ^ unsafe.Offsetof(C.struct_core_send_wr{}.remote_qpn))
	_ = -(unsafe.Offsetof(SendWR{}.RemoteQKey) ^ unsafe.Offsetof(C.struct_core_send_wr{}.remote_qkey))
	_ = -(unsafe.Offsetof(SendWR{}.Placement) ^ unsafe.Offsetof(C.struct_core_send_wr{}.placement))
	_ = -(unsafe.Offsetof(SendWR{}.Selectivity) ^ unsafe.Offsetof(C.struct_core_send_wr{}.selectivity))

	_ = -(unsafe.Sizeof(RecvWR{}) ^ C.sizeof_struct_core_recv_wr)
	_ = -(unsafe.Offsetof(RecvWR{}.FirstSGE) ^ unsafe.Offsetof(C.struct_core_recv_wr{}.first_sge))
	_ = -(unsafe.Offsetof(RecvWR{}.NumSGE) ^ unsafe.Offsetof(C.struct_core_recv_wr{}.num_sge))

	_ = -(unsafe.Sizeof(SGE{}) ^ C.sizeof_struct_core_sge)
	_ = -(unsafe.Offsetof(SGE{}.Length) ^ unsafe.Offsetof(C.struct_core_sge{}.length))
	_ = -(unsafe.Offsetof(SGE{}.LKey) ^ unsafe.Offsetof(C.struct_core_sge{}.lkey))

	_ = -(unsafe.Sizeof(WC{}) ^ C.sizeof_struct_ibv_wc)
	_ = -(unsafe.Offsetof(WC{}.Status) ^ unsafe.Offsetof(C.struct_ibv_wc{}.status))
	_ = -(unsafe.Offsetof(WC{}.Opcode) ^ unsafe.Offsetof(C.struct_ibv_wc{}.opcode))
	_ = -(unsafe.Offsetof(WC{}.VendorErr) ^ unsafe.Offsetof(C.struct_ibv_wc{}.vendor_err))
	_ = -(unsafe.Offsetof(WC{}.ByteLen) ^ unsafe.Offsetof(C.struct_ibv_wc{}.byte_len))
	_ = -(unsafe.Offsetof(WC{}.QPNum) ^ unsafe.Offsetof(C.struct_ibv_wc{}.qp_num))
	_ = -(unsafe.Offsetof(WC{}.SrcQP) ^ unsafe.Offsetof(C.struct_ibv_wc{}.src_qp))
	_ = -(unsafe.Offsetof(WC{}.WCFlags) ^ unsafe.Offsetof(C.struct_ibv_wc{}.wc_flags))
	_ = -(unsafe.Offsetof(WC{}.PkeyIndex) ^ unsafe.Offsetof(C.struct_ibv_wc{}.pkey_index))
	_ = -(unsafe.Offsetof(WC{}.SLID) ^ unsafe.Offsetof(C.struct_ibv_wc{}.slid))
	_ = -(unsafe.Offsetof(WC{}.SL) ^ unsafe.Offsetof(C.struct_ibv_wc{}.sl))
	_ = -(unsafe.Offsetof(WC{}.DLIDPathBits) ^ unsafe.Offsetof(C.struct_ibv_wc{}.dlid_path_bits))

	_ = -(unsafe.Sizeof(Timestamp{}) ^ C.sizeof_struct_core_wc_time)
	_ = -(unsafe.Offsetof(Timestamp{}.Wallclock) ^ unsafe.Offsetof(C.struct_core_wc_time{}.wallclock))
)
