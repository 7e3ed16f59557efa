package rdmacore

// #include "core/core.h"
import "C"

import (
	"context"
	"math"
	"runtime"
	"structs"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// CQ is a completion queue with a completion channel, its own or a shared one.
type CQ struct {
	c        *C.struct_ibv_cq // nil once destroyed
	channel  *CompChannel
	provider *Provider
	id       *ID  // that made it with its QP and destroys it with it; nil for one of CreateCQ
	users    int  // QPs that use it; guarded by the provider's cqUsers
	left     bool // its id's QP is gone while others use it: it goes with the last of those
	extended bool // of CreateCQEx, with these fields
	fields   WCFields
	nextPoll bool        // ibv_next_poll works there
	asked    atomic.Bool // for an event, by RequestNotify
	merged   atomic.Bool // an event may stand for several completions (Moderate)
	seen     sightings   // what was looked at, and not taken
}

// CreateCQ makes a completion queue for at least entries completions (ibv_create_cq(3)), with a channel of its own for
// its events.
func (d *Device) CreateCQ(entries int) (*CQ, error) { return d.createPlainCQ(nil, entries) }

// CreateCQ makes a completion queue that sends its events to the channel.
func (c *CompChannel) CreateCQ(entries int) (*CQ, error) {
	if !c.open() {
		return nil, closed("ibv_create_cq", "completion channel")
	}
	return c.device.createPlainCQ(c, entries)
}

func (d *Device) createPlainCQ(shared *CompChannel, entries int) (*CQ, error) {
	return d.createCQ("ibv_create_cq", shared, entries,
		func(channel *C.struct_ibv_comp_channel, c **C.struct_ibv_cq) C.int {
			return C.core_create_cq(d.provider.c, d.c, C.int(entries), channel, c)
		})
}

func (d *Device) createCQ(op string, shared *CompChannel, wanted int,
	create func(*C.struct_ibv_comp_channel, **C.struct_ibv_cq) C.int) (*CQ, error) {
	if !d.open() {
		return nil, closed(op, "device")
	}
	if wanted <= 0 || wanted > 1<<30 {
		return nil, fail(op, syscall.EINVAL, "a completion queue of %d entries", wanted)
	}
	var c *C.struct_ibv_cq
	p := d.provider
	if shared != nil {
		if err := check(op, int(create(shared.c, &c))); err != nil {
			return nil, d.beyond(err, cqEntries(wanted))
		}
		return p.newCQOn(shared, c, nil), nil
	}
	channel, err := d.nativeCompChannel("ibv_create_comp_channel")
	if err != nil {
		return nil, err
	}
	if err := check(op, int(create(channel, &c))); err != nil {
		C.core_destroy_comp_channel(p.c, channel)
		return nil, d.beyond(err, cqEntries(wanted))
	}
	return p.newCQ(c, channel, nil), nil
}

func (p *Provider) newCQ(c *C.struct_ibv_cq, channel *C.struct_ibv_comp_channel, id *ID) *CQ {
	return p.newCQOn(p.newCompChannel(channel), c, id)
}

func (p *Provider) newCQOn(channel *CompChannel, c *C.struct_ibv_cq, id *ID) *CQ {
	cq := &CQ{c: c, provider: p, id: id, channel: channel}
	channel.carry(cq)
	p.remember(unsafe.Pointer(c), cq)
	return cq
}

// Resize makes room for at least entries completions (ibv_resize_cq(3)).  EINVAL when there are more in it.
func (c *CQ) Resize(entries int) error {
	const op = "ibv_resize_cq"
	if !c.open() {
		return closed(op, "CQ")
	}
	if entries <= 0 || entries > 1<<30 {
		return fail(op, syscall.EINVAL, "a completion queue of %d entries", entries)
	}
	return c.provider.byHandle(c.c.context).beyond(
		check(op, int(C.core_resize_cq(c.provider.c, c.c, C.int(entries)))), cqEntries(entries),
	)
}

// Moderate has one completion event stand for count completions, or for those that come within period of the first
// of them, whichever is earlier (ibv_modify_cq(3)).  The period counts in microseconds, up to 65535.  Zero in
// either is an event for each.  EOPNOTSUPP where the device cannot.
func (c *CQ) Moderate(count uint16, period time.Duration) error {
	const op = "ibv_modify_cq"
	if !c.open() {
		return closed(op, "CQ")
	}
	micros := period.Microseconds()
	if micros < 0 || micros > math.MaxUint16 || (micros == 0 && period > 0) {
		return fail(op, syscall.EINVAL, "a period of %v (1us to 65535us, or 0)", period)
	}
	err := check(op, int(C.core_moderate_cq(c.c, C.uint16_t(count), C.uint16_t(micros))))
	if err == nil {
		c.merged.Store(count > 1)
	}
	return err
}

func (c *CQ) open() bool { return c != nil && c.c != nil }

// native is nil for a nil queue: none given.
func (c *CQ) native() *C.struct_ibv_cq {
	if c == nil {
		return nil
	}
	return c.c
}

// retire ends the Go side of the queue and of its channel; undo takes that back.
func (c *CQ) retire() (undo func()) {
	native, channel := c.c, c.channel
	restore := channel.leave(c)
	c.c, c.channel = nil, nil
	return func() {
		c.c, c.channel = native, channel
		restore()
	}
}

// Destroy frees the queue and a channel of its own (ibv_destroy_cq(3)).  EBUSY while QPs use it.  EINVAL for a queue of
// CreateQP, which is destroyed with its QP.
func (c *CQ) Destroy() error {
	const op = "ibv_destroy_cq"
	if !c.open() {
		return closed(op, "CQ")
	}
	if c.id != nil || c.left {
		return fail(op, syscall.EINVAL, "this CQ was made by rdma_create_qp and goes with rdma_destroy_qp")
	}
	return c.free(op)
}

// Entries is how many completions the queue has room for, at least as many as were asked for; 0 once destroyed.
func (c *CQ) Entries() int {
	if !c.open() {
		return 0
	}
	return int(c.c.cqe)
}

// Destroyed reports whether the queue is gone: by Destroy, or with the QPs that it was made for.
func (c *CQ) Destroyed() bool { return !c.open() }

func (c *CQ) free(op string) error {
	err := c.provider.destroy(
		func() error { return check(op, int(C.core_destroy_cq(c.provider.c, c.c))) }, unsafe.Pointer(c.c),
	)
	if err != nil {
		return err
	}
	channel, shared := c.channel.c, c.channel.device != nil
	c.retire()
	if shared {
		return nil
	}
	return check("ibv_destroy_comp_channel",
		int(C.core_destroy_comp_channel(c.provider.c, channel)))
}

// Poll takes up to len(wcs) completions without waiting (ibv_poll_cq(3)) and returns their number.
func (c *CQ) Poll(wcs []WC) (int, error) { return c.poll(wcs, nil, 1) }

// poll fills stamps too, which is nil or as long as wcs.
func (c *CQ) poll(wcs []WC, stamps []Timestamp, attempts uint32) (n int, err error) {
	if !c.open() {
		return 0, closed("ibv_poll_cq", "CQ")
	}
	if len(wcs) == 0 {
		return 0, nil
	}
	if c.seen.first.Load() != nil {
		return c.pollSeen(wcs, stamps)
	}
	return c.pollNative(wcs, stamps, attempts)
}

func (c *CQ) pollNative(wcs []WC, stamps []Timestamp, attempts uint32) (n int, err error) {
	op := "ibv_poll_cq"
	if c.extended {
		op = "ibv_start_poll"
		n = hotPollCQEx(unsafe.Pointer(c.c), c.fields, c.nextPoll, wcs, stamps, attempts)
	} else {
		n = hotPollCQ(unsafe.Pointer(c.c), wcs, attempts)
	}
	if n < 0 {
		return 0, check(op, n)
	}
	return n, nil
}

// RequestNotify asks for one event at the next completion, or at the next solicited one or error
// (ibv_req_notify_cq(3)).  Poll once more after it before WaitEvent: completions that were there already
// raise no event.
func (c *CQ) RequestNotify(solicited bool) error {
	const op = "ibv_req_notify_cq"
	if !c.open() {
		return closed(op, "CQ")
	}
	only := C.int(0)
	if solicited {
		only = 1
	}
	c.asked.Store(true)
	return check(op, int(C.core_req_notify_cq(c.c, only)))
}

// WaitEvent waits for the event that RequestNotify asked for (ibv_get_cq_event(3)) and acknowledges it.
// The error wraps ctx.Err() when ctx ends first.
func (c *CQ) WaitEvent(ctx context.Context) error {
	const op = "ibv_get_cq_event"
	if !c.open() {
		return closed(op, "CQ")
	}
	_, err := c.channel.get(ctx, c)
	return err
}

// WCFields are fields of a completion that a queue of CreateCQEx has (enum ibv_create_cq_wc_flags).
type WCFields uint32

// Timestamp is when a completion came; 0 in either where the queue was not made with it, and of failures.
type Timestamp struct {
	_         structs.HostLayout
	Raw       uint64 // ticks of the device's clock, as Device.RawClock has it; of DeviceAttr.CompletionTimestampMask
	Wallclock uint64 // nanoseconds since 1970
}

// CreateCQEx makes a completion queue with these fields and time stamps in its completions (ibv_create_cq_ex(3)). It is
// polled with ibv_start_poll(3), ibv_next_poll and ibv_end_poll, where one of CreateCQ is polled with ibv_poll_cq(3).
// ibv_next_poll is not used with rdma_rxe, because its library has errors there. Nothing else is different. A field
// that it was not created with is 0. EOPNOTSUPP for fields that the device does not have.
func (d *Device) CreateCQEx(entries int, fields WCFields) (*CQ, error) {
	return d.createExtendedCQ(nil, entries, fields)
}

// CreateCQEx makes such a completion queue that sends its events to the channel.
func (c *CompChannel) CreateCQEx(entries int, fields WCFields) (*CQ, error) {
	if !c.open() {
		return nil, closed("ibv_create_cq_ex", "completion channel")
	}
	return c.device.createExtendedCQ(c, entries, fields)
}

func (d *Device) createExtendedCQ(shared *CompChannel, entries int, fields WCFields) (*CQ, error) {
	const op = "ibv_create_cq_ex"
	var nextPoll C.bool
	cq, err := d.createCQ(op, shared, entries, func(channel *C.struct_ibv_comp_channel, c **C.struct_ibv_cq) C.int {
		return C.core_create_cq_ex(d.provider.c, d.c, C.int(entries), channel, C.uint64_t(fields), c, &nextPoll)
	})
	if failure, ok := err.(*Error); ok && failure.Op == op && failure.Errno == syscall.EOPNOTSUPP {
		failure.Why = "the device has no completions with " + fields.String()
		if fields&(WCFieldTimestamp|WCFieldWallclock) != 0 {
			failure.Why += "; ask for its completion_timestamp_mask, 0 is without time stamps"
		}
	}
	if err != nil {
		return nil, err
	}
	cq.extended, cq.fields, cq.nextPoll = true, fields, bool(nextPoll)
	return cq, nil
}

// Fields are those that CreateCQEx was given, and whether it made the queue.
func (c *CQ) Fields() (fields WCFields, extended bool) {
	if c == nil {
		return 0, false
	}
	return c.fields, c.extended
}

// PollTimestamps is Work.Poll with the times of completions, which a queue of CreateCQEx knows.  EINVAL when stamps has
// less room than wcs.
func (c *CQ) PollTimestamps(wcs []WC, stamps []Timestamp, attempts uint32) (int, error) {
	stamps, err := c.blank(wcs, stamps)
	if err != nil {
		return 0, err
	}
	return c.poll(wcs, stamps, attempts)
}

// WaitTimestamps is Wait with the time of each completion, as PollTimestamps returns it.
func (c *CQ) WaitTimestamps(ctx context.Context, wcs []WC, stamps []Timestamp) (int, error) {
	stamps, err := c.blank(wcs, stamps)
	if err != nil {
		return 0, err
	}
	return c.wait(ctx, wcs, stamps)
}

// blank is what stamps of completions that have none are.
func (c *CQ) blank(wcs []WC, stamps []Timestamp) ([]Timestamp, error) {
	if len(stamps) < len(wcs) {
		return nil, fail(
			"ibv_start_poll", syscall.EINVAL, "room for %d time stamps, of %d completions", len(stamps), len(wcs),
		)
	}
	stamps = stamps[:len(wcs)]
	if c != nil && !c.extended {
		clear(stamps)
	}
	return stamps, nil
}

// backOff is the pace of CQ.Wait, in slices without a completion. A poll takes 30 to 60 ns, so the first slice is a few
// microseconds, in which a peer that is running answers. When it does not answer, it may wait for this very processor.
// So after each slice other goroutines and threads run, and each slice is longer than the last. After some ten
// milliseconds there are sleeps in between.
type backOff struct {
	slices   int
	attempts uint32 // of the next slice
	sleep    time.Duration
}

const (
	firstAttempts = 64
	maxAttempts   = 512
	spinSlices    = 512
	firstSleep    = 20 * time.Microsecond
	maxSleep      = time.Millisecond
)

func newBackOff() backOff { return backOff{attempts: firstAttempts, sleep: firstSleep} }

// next begins another slice.  pause is the sleep before it; 0: let others run.
func (b *backOff) next() (pause time.Duration) {
	if b.slices < spinSlices {
		b.slices++
		b.attempts = min(2*b.attempts, maxAttempts)
		return 0
	}
	pause = b.sleep
	b.sleep = min(2*b.sleep, maxSleep)
	return pause
}

// Wait polls until there is at least one completion and returns how many it took, at most len(wcs).  It
// busy-polls first, for latency, and turns to short sleeps when nothing comes.  The error wraps ctx.Err()
// when ctx ends first.
func (c *CQ) Wait(ctx context.Context, wcs []WC) (int, error) { return c.wait(ctx, wcs, nil) }

func (c *CQ) wait(ctx context.Context, wcs []WC, stamps []Timestamp) (int, error) {
	if len(wcs) == 0 {
		return 0, fail("ibv_poll_cq", syscall.EINVAL, "no room for completions")
	}
	if c.open() && c.provider.clock.Virtual() {
		return c.waitVirtually(ctx, wcs, stamps)
	}
	for pace := newBackOff(); ; {
		n, err := c.poll(wcs, stamps, pace.attempts)
		if n != 0 || err != nil {
			return n, err
		}
		if ctx.Err() != nil {
			return 0, cancelled(ctx, "ibv_poll_cq", "a completion")
		}
		if pause := pace.next(); pause > 0 {
			time.Sleep(pause)
		} else {
			runtime.Gosched()
			yieldProcessor()
		}
	}
}

// waitVirtually is Wait on a virtual clock: nothing can come while everyone waits but by moving the clock.
func (c *CQ) waitVirtually(ctx context.Context, wcs []WC, stamps []Timestamp) (n int, err error) {
	found := c.provider.clock.virtual.wait(ctx, func() bool {
		n, err = c.poll(wcs, stamps, 1)
		return n != 0 || err != nil
	})
	if !found {
		return 0, cancelled(ctx, "ibv_poll_cq", "a completion")
	}
	return n, err
}

// yieldProcessor is sched_yield(2): it matters where there are more spinning threads than processors, and
// costs a fraction of a microsecond where there are not.
func yieldProcessor() { syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }

// lazyWaiter is an fdWaiter made at its first use: most descriptors are never waited on.
type lazyWaiter struct {
	mu     sync.Mutex
	waiter *fdWaiter
}

func (l *lazyWaiter) get(clock *Clock, descriptor func() (fd int, name string)) (*fdWaiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiter != nil {
		return l.waiter, nil
	}
	fd, name := descriptor()
	if fd < 0 {
		return nil, fail("fcntl", syscall.Errno(-fd), "%s have no descriptor", name)
	}
	waiter, err := newFDWaiter(clock, fd, name)
	if err != nil {
		return nil, err
	}
	l.waiter = waiter
	return waiter, nil
}

func (l *lazyWaiter) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiter != nil {
		l.waiter.close()
		l.waiter = nil
	}
}
