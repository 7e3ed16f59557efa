package hostfuncs

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"rdmarun/hostfuncs/stream"
	"rdmarun/rdmacore"
)

// fuzzWorld is one round. Guests of one provider make random calls. There is a working pair that they must not
// disturb, and memory of the host that they must not reach.
type fuzzWorld struct {
	seed       uint64
	concurrent bool // the guests run concurrently, on the wall clock: the order differs each time
	provider   *rdmacore.Provider
	exchange   *stream.Exchange
	table      []Function
	functions  map[string]*Function
	structs    []Struct
	enums      []Enum
	errnos     map[int32]bool
	guests     []*fuzzGuest
	pair       *fuzzPair
	host       *fuzzHost
	trace      io.Writer // nil: calls are not written down
	step       int
	serial     uint32

	mu    sync.Mutex
	known fuzzKnown
}

// fuzzKnown is what guests have sent each other, or have found out: nothing is a secret.
type fuzzKnown struct {
	device  Address
	ports   []fuzzPort
	qpns    []uint32
	keys    []fuzzKey
	handles []uint64
	targets []fuzzTarget // queue pairs of the working pair
}

type fuzzPort struct {
	number uint16
	space  uint32
}

type fuzzTarget struct{ qpn, psn uint32 }

const fuzzGuests = 3

func newFuzzWorld(seed uint64, concurrent bool, trace io.Writer) *fuzzWorld {
	w := &fuzzWorld{seed: seed, concurrent: concurrent, trace: trace, table: Functions(), structs: Structs(),
		enums:    Enums(),
		exchange: stream.New(), functions: make(map[string]*Function), errnos: make(map[int32]bool)}
	for at := range w.table {
		w.functions[w.table[at].Name] = &w.table[at]
	}
	known := errnos()
	for _, value := range known.Values {
		w.errnos[int32(value.Value)] = true
	}
	options := []rdmacore.Option{rdmacore.WithSeed(seed)}
	if !concurrent {
		options = append(options, rdmacore.WithVirtualClock())
	}
	var err error
	if w.provider, err = rdmacore.Open("soft", options...); err != nil {
		w.failf("open: %v", err)
	}
	w.pair = newFuzzPair(w)
	w.host = newFuzzHost(w)
	for number := range fuzzGuests {
		g := &fuzzGuest{world: w, number: number, worked: make(map[string]int)}
		g.begin()
		w.guests = append(w.guests, g)
	}
	return w
}

// share adds to what all guests know.
func (w *fuzzWorld) share(what func(*fuzzKnown)) {
	const most = 64
	w.mu.Lock()
	defer w.mu.Unlock()
	what(&w.known)
	k := &w.known
	k.ports, k.qpns, k.keys, k.handles = last(k.ports, most), last(k.qpns, most), last(k.keys, most),
		last(k.handles, most)
}

func last[T any](of []T, most int) []T { return of[max(0, len(of)-most):] }

func (w *fuzzWorld) heard() fuzzKnown {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.known
	k.targets = slices.Clone(k.targets)
	// An append to these makes a copy.
	k.ports, k.qpns, k.keys, k.handles = slices.Clip(k.ports), slices.Clip(k.qpns), slices.Clip(k.keys),
		slices.Clip(k.handles)
	return k
}

func (w *fuzzWorld) tracef(format string, args ...any) {
	if w.trace != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		fmt.Fprintf(w.trace, format, args...)
	}
}

// failf ends the process, as what AddressSanitizer finds does: the one that started it says how to repeat it.
func (w *fuzzWorld) failf(format string, args ...any) {
	fmt.Printf("\n%s seed %d, step %d: %s\n", fuzzFailed, w.seed, w.step, fmt.Sprintf(format, args...))
	os.Exit(1)
}

// run takes steps of the round. Each is drawn by a generator of its own, so that the others stay what they are when
// one is left out.
func (w *fuzzWorld) run(steps []int) {
	if !w.concurrent {
		for n, step := range steps {
			random := w.random(step)
			w.take(step, w.guests[random.IntN(len(w.guests))], random)
			if n%16 == 15 {
				w.check()
			}
		}
	} else {
		var done sync.WaitGroup
		for at, g := range w.guests {
			done.Go(func() {
				for _, step := range steps {
					if step%len(w.guests) == at {
						w.take(step, g, w.random(step))
					}
				}
			})
		}
		for range 8 {
			w.pair.beat()
		}
		done.Wait()
	}
	w.check()
	w.end()
}

func (w *fuzzWorld) random(step int) *rand.Rand { return rand.New(rand.NewPCG(w.seed, uint64(step)+1)) }

func (w *fuzzWorld) take(step int, g *fuzzGuest, random *rand.Rand) {
	all, total := fuzzSteps(), 0
	for _, each := range all {
		total += each.weight
	}
	at := random.IntN(total)
	for _, each := range all {
		if at -= each.weight; at < 0 {
			if !w.concurrent {
				w.step = step
			}
			w.tracef("step %d: guest %d, %s\n", step, g.number, each.name)
			g.random, g.next, g.given = random, fuzzScratch, nil
			each.run(g)
			return
		}
	}
}

// check holds what must be true whatever the guests do.
func (w *fuzzWorld) check() {
	w.host.check()
	w.pair.beat()
}

// end ends the guests, in any order and with all that they have; nothing may be left.
func (w *fuzzWorld) end() {
	for at := range w.guests {
		w.tracef("guest %d ends\n", w.guests[at].number)
		w.guests[at].end()
	}
	w.check()
	w.pair.end()
	w.host.end()
	if live := w.provider.Live(); live.Total() != 0 {
		w.failf("left behind: %s", live)
	}
	if err := w.provider.Close(); err != nil {
		w.failf("close: %v", err)
	}
}

// begin makes the instance of a guest, in memory with detection of overruns: the rest of its reservation, and the page
// before it, are inaccessible.
func (g *fuzzGuest) begin() {
	g.world.mu.Lock()
	g.world.serial++
	serial := g.world.serial
	g.world.mu.Unlock()
	var err error
	if g.region, err = rdmacore.NewMemory(4*fuzzPages + os.Getpagesize()); err != nil {
		g.world.failf("memory: %v", err)
	}
	before := unsafe.Add(unsafe.Pointer(unsafe.SliceData(g.region.Bytes())), -os.Getpagesize())
	g.guard, err = unix.MmapPtr(-1, 0, before, uintptr(os.Getpagesize()), unix.PROT_NONE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE)
	if err != nil {
		g.guard = nil // that page is in use
	}
	g.Instance = NewInstance(Config{
		Provider: g.world.provider, Serial: serial, Participant: g.world.exchange.Participant(g.role()),
	})
	g.keys, g.groups = nil, nil
	g.resize(fuzzPages)
}

// resize gives the guest so much memory, and makes the rest inaccessible.
func (g *fuzzGuest) resize(size int) {
	all := g.region.Bytes()
	for _, part := range []struct {
		bytes []byte
		may   int
	}{{all[:size], unix.PROT_READ | unix.PROT_WRITE}, {all[size:], unix.PROT_NONE}} {
		if err := unix.Mprotect(part.bytes, part.may); err != nil {
			g.world.failf("mprotect: %v", err)
		}
	}
	g.SetMemory(g.region, size)
}

func (g *fuzzGuest) end() {
	if _, err := g.Close(); err != nil {
		g.world.failf("the end of guest %d: %v", g.number, err)
	}
	if g.guard != nil {
		unix.MunmapPtr(g.guard, uintptr(os.Getpagesize()))
	}
	g.region.Release()
	if g.region.Size() != 0 {
		g.world.failf("the memory of guest %d is still referred to", g.number)
	}
}

// fuzzHost is memory of the host's own, next to its other data, that it has registered for itself.
type fuzzHost struct {
	world  *fuzzWorld
	memory *rdmacore.Memory
	pd     *rdmacore.PD
	mr     *rdmacore.MR
}

const fuzzCanary = 0xc5

func newFuzzHost(w *fuzzWorld) *fuzzHost {
	h := &fuzzHost{world: w}
	device, err := w.provider.DefaultDevice()
	if err == nil {
		h.memory, err = rdmacore.NewMemoryOn(rdmacore.BackingHeap, 4096)
	}
	if err == nil {
		h.pd, err = device.AllocPD()
	}
	if err != nil {
		w.failf("the host's memory: %v", err)
	}
	fillWith(h.memory.Bytes(), fuzzCanary)
	if h.mr, err = h.pd.RegMR(h.memory, 0, 4096, rdmacore.Access(fuzzRights)); err != nil {
		w.failf("the host's region: %v", err)
	}
	w.share(func(k *fuzzKnown) {
		k.keys = append(k.keys, fuzzKey{address: h.mr.Address(), lkey: h.mr.LKey(), rkey: h.mr.RKey()})
	})
	return h
}

func fillWith(memory []byte, value byte) {
	for at := range memory {
		memory[at] = value
	}
}

func (h *fuzzHost) check() {
	for at, value := range h.memory.Bytes() {
		if value != fuzzCanary {
			h.world.failf("byte %d of the host's memory is %#x", at, value)
		}
	}
}

func (h *fuzzHost) end() {
	for _, err := range []error{h.mr.Dereg(), h.pd.Dealloc()} {
		if err != nil {
			h.world.failf("the host's region: %v", err)
		}
	}
	h.memory.Release()
}

// fuzzPair is two guests that mean well, connected. Nothing changes their messages, memory and connection.
type fuzzPair struct {
	world *fuzzWorld
	ends  [2]*fuzzEnd
	beats byte
}

type fuzzEnd struct {
	*fuzzGuest
	channel, pd, ep, qp, sendCQ, recvCQ uint64
	key                                 fuzzKey
	expected                            []byte // what is in its buffers, as far as it knows
}

func newFuzzPair(w *fuzzWorld) *fuzzPair {
	p := &fuzzPair{world: w}
	for n := range p.ends {
		g := &fuzzGuest{world: w, number: -1 - n, worked: make(map[string]int), random: w.random(-2 - n)}
		g.begin()
		e := &fuzzEnd{fuzzGuest: g}
		fillWith(g.memory[fuzzBuffers:], byte(fuzzCanary+n))
		e.expected = slices.Clone(g.memory[fuzzBuffers:])
		e.channel, e.pd = e.must("create_event_channel"), e.must("alloc_pd", 0)
		out := e.at(uint32(unsafe.Sizeof(MR{})))
		handle := e.must("reg_mr", e.pd, fuzzBuffers, 0x1000, uint64(fuzzRights), uint64(out))
		mr := take[MR](e.Instance, out)
		e.key = fuzzKey{mr.Address, mr.LKey, mr.RKey, Handle(handle)}
		p.ends[n] = e
	}
	p.connect()
	return p
}

// must is a call that has to succeed.
func (e *fuzzEnd) must(name string, words ...uint64) uint64 {
	result := e.invoke(e.world.functions[name], words)
	if int32(result) < 0 {
		e.world.failf("the working pair: %s: %v", name, e.lastError)
	}
	return result
}

// at is room for a struct; each call uses the same.
func (e *fuzzEnd) at(size uint32) Pointer {
	clear(e.memory[fuzzScratch : fuzzScratch+size])
	return fuzzScratch
}

func (p *fuzzPair) connect() {
	const attrAt, infoAt = fuzzScratch + 0x100, fuzzScratch + 0x200
	active, passive := p.ends[0], p.ends[1]
	attr := QPInitAttr{
		StructSize: uint32(unsafe.Sizeof(QPInitAttr{})), MaxSendWR: 8, MaxRecvWR: 8, MaxSendSGE: 1, MaxRecvSGE: 1,
	}
	info := AddrInfo{StructSize: uint32(unsafe.Sizeof(AddrInfo{})), Flags: raiPassive}
	put(active.Instance, attrAt, attr)
	put(passive.Instance, attrAt, attr)
	put(passive.Instance, infoAt, info)
	listener := passive.must("create_ep", passive.channel, infoAt, passive.pd, attrAt)
	passive.must("listen", listener, 4)
	passive.must("local_address", listener, fuzzScratch)
	port := take[Address](passive.Instance, fuzzScratch).Port
	passive.must("device_address", 0, fuzzScratch)
	info.Flags, info.Destination = 0, take[Address](passive.Instance, fuzzScratch)
	p.world.share(func(k *fuzzKnown) { k.device = info.Destination })
	info.Destination.Port = port
	put(active.Instance, infoAt, info)
	active.ep = active.must("create_ep", active.channel, infoAt, active.pd, attrAt)
	active.must("connect", active.ep, 0)
	passive.ep = uint64(passive.event(listener, rdmacore.EventConnectRequest).EP)
	passive.must("accept", passive.ep, 0)
	active.event(active.ep, rdmacore.EventEstablished)
	passive.event(passive.ep, rdmacore.EventEstablished)
	passive.must("destroy_ep", listener)
	for _, e := range p.ends {
		e.qp, e.sendCQ, e.recvCQ = e.must("ep_qp", e.ep), e.must("ep_send_cq", e.ep), e.must("ep_recv_cq", e.ep)
	}
	p.world.share(func(k *fuzzKnown) {
		for _, e := range p.ends {
			k.keys, k.handles = append(k.keys, e.key), append(k.handles, e.ep, e.qp, uint64(e.key.handle))
		}
	})
	p.publish()
}

func (e *fuzzEnd) event(of uint64, want rdmacore.EventType) CMEvent {
	at := e.at(uint32(unsafe.Sizeof(CMEvent{})))
	put(e.Instance, at, uint32(unsafe.Sizeof(CMEvent{})))
	e.must("wait_event", e.channel, of, uint64(at), timeout)
	event := take[CMEvent](e.Instance, at)
	if rdmacore.EventType(event.Type) != want || event.Status != 0 {
		e.world.failf("the working pair: %s with status %d, not %s", rdmacore.EventType(event.Type), event.Status, want)
	}
	return event
}

// publish gives the other guests all facts of the pair's queue pairs. They use the numbers wherever a
// number of a queue pair goes, also as conn_param.qp_num, which must not end another guest's connection.
func (p *fuzzPair) publish() {
	var targets []fuzzTarget
	for _, e := range p.ends {
		ep, _ := e.endpoints.get(Handle(e.ep))
		attr, err := ep.id.QP().Query()
		if err != nil {
			p.world.failf("the working pair: %v", err)
		}
		targets = append(targets, fuzzTarget{ep.id.QP().Num(), attr.RQPSN})
	}
	p.world.share(func(k *fuzzKnown) {
		k.targets = targets
		for _, target := range targets {
			k.qpns = append(k.qpns, target.qpn)
		}
	})
}

// beat sends a message each way, writes to each other's memory, and looks at all of it.
func (p *fuzzPair) beat() {
	p.beats++
	for n, e := range p.ends {
		p.send(e, p.ends[1-n])
	}
	for _, e := range p.ends {
		if at := firstDifference(e.expected, e.memory[fuzzBuffers:]); at >= 0 {
			p.world.failf("the working pair: byte %#x of a memory that only they may write is %#x, not %#x",
				fuzzBuffers+at, e.memory[fuzzBuffers+at], e.expected[at])
		}
		put(e.Instance, fuzzScratch, uint32(unsafe.Sizeof(CMEvent{})))
		if result := int32(e.invoke(e.world.functions["wait_event"], []uint64{
			e.channel, 0, fuzzScratch, 0,
		})); result != -int32(syscall.ETIMEDOUT) {
			p.world.failf(
				"the working pair: wait_event is %d, event %s", result,
				rdmacore.EventType(take[CMEvent](e.Instance, fuzzScratch).Type),
			)
		}
	}
	p.publish()
}

func firstDifference(want, have []byte) int {
	if bytes.Equal(want, have) {
		return -1
	}
	for at := range want {
		if want[at] != have[at] {
			return at
		}
	}
	return -1
}

// send has one end write and send 64 bytes to the other.
func (p *fuzzPair) send(from, to *fuzzEnd) {
	const length, source, written, received = 64, 0, 0x100, 0x200
	const wrAt, sgeAt, wcAt = fuzzScratch, fuzzScratch + 0x100, fuzzScratch + 0x200
	for _, memory := range [][]byte{
		from.expected[source:], from.memory[fuzzBuffers+source:], to.expected[written:], to.expected[received:],
	} {
		fillWith(memory[:length], p.beats)
	}
	put(to.Instance, sgeAt, SGE{Address: fuzzBuffers + received, Length: length, LKey: to.key.lkey})
	put(to.Instance, wrAt, RecvWR{WRID: 3, NumSGE: 1})
	to.must("post_recv", to.qp, wrAt, 1, sgeAt, 1, 0)
	put(from.Instance, sgeAt, SGE{Address: fuzzBuffers + source, Length: length, LKey: from.key.lkey})
	put(from.Instance, wrAt, SendWR{
		WRID: 1, Opcode: uint32(rdmacore.OpRDMAWrite), NumSGE: 1, RKey: to.key.rkey,
		RemoteAddress: to.key.address + written,
	})
	put(from.Instance, wrAt+Pointer(unsafe.Sizeof(SendWR{})), SendWR{
		WRID: 2, Opcode: uint32(rdmacore.OpSend), Flags: uint32(rdmacore.SendSignaled), NumSGE: 1,
	})
	from.must("post_send", from.qp, wrAt, 2, sgeAt, 1, 0)
	for _, each := range []struct {
		end  *fuzzEnd
		cq   uint64
		wrID uint64
	}{{from, from.sendCQ, 2}, {to, to.recvCQ, 3}} {
		each.end.must("wait_cq", each.cq, wcAt, 1, timeout)
		if wc := take[WC](each.end.Instance, wcAt); wc.WRID != each.wrID || wc.Status != 0 {
			p.world.failf("the working pair: completion of %d with %s", wc.WRID, rdmacore.WCStatus(wc.Status))
		}
	}
}

func (p *fuzzPair) end() {
	for _, e := range p.ends {
		e.fuzzGuest.end()
	}
}
