package hostfuncs

import (
	"encoding/binary"
	"syscall"
	"testing"
	"unsafe"

	"rdmarun/rdmacore"
)

// Where the tests put structs in guest memory.
const (
	infoAt   = 0x100
	attrAt   = 0x200
	eventAt  = 0x300
	mrAt     = 0x500
	wrAt     = 0x600
	sgeAt    = 0x700
	wcAt     = 0x800
	postedAt = 0x900
	bufferAt = 0x1000

	addressAt = 0xa00
	eceAt     = 0xa40
	extraAt   = 0xa80
	queryAt   = 0xb00
	resultAt  = 0xd00
	ahAttrAt  = 0x3040
	asyncAt   = 0x30c0
	portAt    = 0x3100
)

const timeout = uint64(30e9)

func put[T any](i *Instance, at Pointer, value T) {
	*(*T)(unsafe.Pointer(&i.memory[at])) = value
}

func take[T any](i *Instance, at Pointer) T { return *(*T)(unsafe.Pointer(&i.memory[at])) }

// must calls a function that has to succeed.
func must(t testing.TB, i *Instance, name string, words ...uint64) uint64 {
	t.Helper()
	result := call(t, i, name, words...)
	if result < 0 {
		t.Fatalf("%s: %v", name, i.lastError)
	}
	return uint64(result)
}

// pair is two connected endpoints of one instance.
type pair struct {
	*Instance
	channel, pd, listener uint64
	active, passive       uint64
	srq                   uint64 // of both; 0: they have queues of their own
}

func (p *pair) event(t testing.TB, of uint64, want rdmacore.EventType) CMEvent {
	t.Helper()
	put(p.Instance, eventAt, CMEvent{StructSize: uint32(unsafe.Sizeof(CMEvent{}))})
	must(t, p.Instance, "wait_event", p.channel, of, eventAt, timeout)
	event := take[CMEvent](p.Instance, eventAt)
	if rdmacore.EventType(event.Type) != want || event.Status != 0 {
		t.Fatalf("%s with status %d, not %s", rdmacore.EventType(event.Type), event.Status, want)
	}
	return event
}

func connectPair(t testing.TB, options ...rdmacore.Option) *pair {
	t.Helper()
	return connectIn(t, newInstance(t, 1<<16, Config{}, options...), 0)
}

// connectIn connects two endpoints of an instance; their receives come from a shared queue for so many, if any.
func connectIn(t testing.TB, i *Instance, shared uint32) *pair {
	t.Helper()
	p := &pair{Instance: i}
	p.channel = must(t, i, "create_event_channel")
	p.pd = must(t, i, "alloc_pd", 0)
	if shared > 0 {
		put(i, attrAt, SRQAttr{StructSize: uint32(unsafe.Sizeof(SRQAttr{})), MaxWR: shared, MaxSGE: 1})
		p.srq = must(t, i, "create_srq", p.pd, attrAt)
	}
	put(i, attrAt, QPInitAttr{StructSize: uint32(unsafe.Sizeof(QPInitAttr{})), MaxSendWR: 8, MaxRecvWR: 8,
		MaxSendSGE: 2, MaxRecvSGE: 2, SRQ: Handle(p.srq)})
	put(i, infoAt, AddrInfo{StructSize: uint32(unsafe.Sizeof(AddrInfo{})), Flags: raiPassive})
	p.listener = must(t, i, "create_ep", p.channel, infoAt, p.pd, attrAt)
	must(t, i, "listen", p.listener, 4)
	const sourceAt, destinationAt = infoAt + 16, infoAt + 40
	must(t, i, "device_address", 0, destinationAt)
	must(t, i, "local_address", p.listener, sourceAt)
	port := take[Address](i, sourceAt).Port
	info := take[AddrInfo](i, infoAt)
	info.Flags, info.Source = 0, Address{}
	info.Destination.Port = port
	put(i, infoAt, info)
	p.active = must(t, i, "create_ep", p.channel, infoAt, p.pd, attrAt)
	must(t, i, "connect", p.active, 0)
	request := p.event(t, p.listener, rdmacore.EventConnectRequest)
	if uint64(request.Listener) != p.listener {
		t.Errorf("the request names listener %#x, not %#x", request.Listener, p.listener)
	}
	p.passive = uint64(request.EP)
	must(t, i, "accept", p.passive, 0)
	p.event(t, p.active, rdmacore.EventEstablished)
	p.event(t, p.passive, rdmacore.EventEstablished)
	return p
}

// Everything is left to Close.
func TestCloseFreesWhatIsLeft(t *testing.T) {
	p := connectPair(t)
	must(t, p.Instance, "reg_mr", p.pd, bufferAt, 64, 1, mrAt)
	must(t, p.Instance, "create_cq", 0, 16)
	freed, err := p.Close()
	if err != nil {
		t.Fatal(err)
	}
	want := rdmacore.Live{rdmacore.KindEventChannel: 1, rdmacore.KindID: 3, rdmacore.KindPD: 1,
		rdmacore.KindMR: 1, rdmacore.KindCQ: 5, rdmacore.KindQP: 2}
	if freed.String() != want.String() {
		t.Errorf("freed %s, not %s", freed, want)
	}
	if live := p.provider.Live(); live.Total() != 0 {
		t.Errorf("left behind: %s", live)
	}
}

// A request that the guest has not read is an endpoint that it never heard of.
func TestCloseRejectsUnreadRequests(t *testing.T) {
	p := connectPair(t)
	second := must(t, p.Instance, "create_ep", p.channel, infoAt, p.pd, attrAt)
	must(t, p.Instance, "connect", second, 0)
	// Asking for an event that does not come reads the request.
	put(p.Instance, eventAt, CMEvent{StructSize: uint32(unsafe.Sizeof(CMEvent{}))})
	expect(t, p.Instance, syscall.ETIMEDOUT, "wait_event", p.channel, p.passive, eventAt, 0)
	must(t, p.Instance, "destroy_ep", p.listener)
	put(p.Instance, eventAt, CMEvent{StructSize: uint32(unsafe.Sizeof(CMEvent{}))})
	must(t, p.Instance, "wait_event", p.channel, second, eventAt, timeout)
	if got := rdmacore.EventType(take[CMEvent](p.Instance, eventAt).Type); got != rdmacore.EventRejected {
		t.Errorf("the second connection got %s", got)
	}
}

func TestDestroyedHandlesAreStale(t *testing.T) {
	p := connectPair(t)
	i := p.Instance
	qp, send, recv := must(t, i, "ep_qp", p.active), must(t, i, "ep_send_cq", p.active),
		must(t, i, "ep_recv_cq", p.active)
	mr := must(t, i, "reg_mr", p.pd, bufferAt, 64, 1, mrAt)

	expect(t, i, syscall.EBUSY, "dealloc_pd", p.pd)
	expect(t, i, syscall.EBUSY, "destroy_event_channel", p.channel)
	expect(t, i, syscall.EINVAL, "destroy_cq", send)

	must(t, i, "dereg_mr", mr)
	must(t, i, "destroy_ep", p.active)
	for name, words := range map[string][]uint64{
		"dereg_mr":   {mr},
		"destroy_ep": {p.active},
		"ep_qp":      {p.active},
		"query_qp":   {qp, attrAt},
		"poll_cq":    {send, wcAt, 1},
		"wait_cq":    {recv, wcAt, 1, timeout},
		"post_send":  {qp, wrAt, 1, sgeAt, 1, 0},
		"post_recv":  {qp, wrAt, 1, sgeAt, 1, 0},
		"connect":    {p.active, 0},
		"listen":     {p.channel, 1}, // of another kind
	} {
		expect(t, i, syscall.EBADF, name, words...)
	}
	p.event(t, p.passive, rdmacore.EventDisconnected)
}

func TestMessageIsMovedInGuestMemory(t *testing.T) {
	p := connectPair(t)
	i := p.Instance
	must(t, i, "reg_mr", p.pd, bufferAt, 0x2000, 1, mrAt)
	lkey := take[MR](i, mrAt).LKey
	activeQP, passiveQP := must(t, i, "ep_qp", p.active), must(t, i, "ep_qp", p.passive)

	put(i, sgeAt, SGE{Address: bufferAt + 0x1000, Length: 64, LKey: lkey})
	put(i, wrAt, RecvWR{WRID: 7, NumSGE: 1})
	if got := must(t, i, "post_recv", passiveQP, wrAt, 1, sgeAt, 1, 0); got != 1 {
		t.Errorf("%d receives posted", got)
	}
	message := "a message from one end of guest memory to the other"
	copy(i.memory[bufferAt:], message)
	put(i, sgeAt, SGE{Address: bufferAt, Length: uint32(len(message)), LKey: lkey})
	put(i, wrAt, SendWR{WRID: 8, Opcode: uint32(rdmacore.OpSend), Flags: uint32(rdmacore.SendSignaled), NumSGE: 1})
	must(t, i, "post_send", activeQP, wrAt, 1, sgeAt, 1, postedAt)
	if posted := binary.LittleEndian.Uint64(i.memory[postedAt:]); posted != 1 {
		t.Errorf("posted is %d", posted)
	}
	for name, c := range map[string]struct {
		cq   uint64
		want WC
	}{
		"send": {must(t, i, "ep_send_cq", p.active), WC{WRID: 8, Opcode: uint32(rdmacore.WCSend)}},
		"recv": {
			must(t, i, "ep_recv_cq", p.passive),
			WC{WRID: 7, Opcode: uint32(rdmacore.WCRecv), ByteLen: uint32(len(message))},
		},
	} {
		must(t, i, "wait_cq", c.cq, wcAt, 1, timeout)
		got := take[WC](i, wcAt)
		if got.WRID != c.want.WRID || got.Status != 0 || got.Opcode != c.want.Opcode ||
			c.want.ByteLen != 0 && got.ByteLen != c.want.ByteLen {
			t.Errorf("%s completion is %+v", name, got)
		}
	}
	if got := string(i.memory[bufferAt+0x1000:][:len(message)]); got != message {
		t.Errorf("received %q", got)
	}
	// Nothing more.
	if n := must(t, i, "poll_cq", must(t, i, "ep_send_cq", p.active), wcAt, 1); n != 0 {
		t.Errorf("%d completions too many", n)
	}
}

func TestBadWork(t *testing.T) {
	p := connectPair(t)
	i := p.Instance
	must(t, i, "reg_mr", p.pd, bufferAt, 64, 1, mrAt)
	lkey := take[MR](i, mrAt).LKey
	qp := must(t, i, "ep_qp", p.active)
	good := SendWR{Opcode: uint32(rdmacore.OpSend), NumSGE: 1}
	inside := SGE{Address: bufferAt, Length: 64, LKey: lkey}
	end := uint64(len(i.memory))
	for name, c := range map[string]struct {
		wr             SendWR
		sge            SGE
		wrs, sges, out uint64
		count          uint64
		want           syscall.Errno
	}{
		"requests outside":      {good, inside, end, sgeAt, 0, 1, syscall.EFAULT},
		"requests past the end": {good, inside, end - 8, sgeAt, 0, 1, syscall.EFAULT},
		"requests of null":      {good, inside, 0, sgeAt, 0, 1, syscall.EFAULT},
		"requests not aligned":  {good, inside, wrAt + 4, sgeAt, 0, 1, syscall.EINVAL},
		"too many requests":     {good, inside, wrAt, sgeAt, 0, 0xffffffff, syscall.EFAULT},
		"buffers outside":       {good, inside, wrAt, end, 0, 1, syscall.EFAULT},
		"posted outside":        {good, inside, wrAt, sgeAt, end, 1, syscall.EFAULT},
		"buffer outside memory": {
			good, SGE{Address: end, Length: 1, LKey: lkey}, wrAt, sgeAt, postedAt, 1, syscall.EFAULT,
		},
		"buffer past the end": {
			good, SGE{Address: end - 1, Length: 2, LKey: lkey}, wrAt, sgeAt, 0, 1, syscall.EFAULT,
		},
		"buffer wraps around": {
			good, SGE{Address: ^uint64(0), Length: 2, LKey: lkey}, wrAt, sgeAt, 0, 1, syscall.EFAULT,
		},
		"buffer not there": {
			SendWR{Opcode: good.Opcode, FirstSGE: 1, NumSGE: 1}, inside, wrAt, sgeAt, 0, 1, syscall.EINVAL,
		},
		"buffer index wraps": {
			SendWR{Opcode: good.Opcode, FirstSGE: 0xffffffff, NumSGE: 2}, inside, wrAt, sgeAt, 0, 1, syscall.EINVAL,
		},
		"no such operation": {SendWR{Opcode: 99, NumSGE: 1}, inside, wrAt, sgeAt, 0, 1, syscall.EINVAL},
	} {
		put(i, wrAt, c.wr)
		put(i, sgeAt, c.sge)
		put(i, postedAt, ^uint64(0))
		got := call(t, i, "post_send", qp, c.wrs, c.count, c.sges, 1, c.out)
		if got != -int32(c.want) {
			t.Errorf("%s: %d (%v), not %v", name, got, i.lastError, c.want)
		}
		if posted := take[uint64](i, postedAt); c.out == postedAt && posted != 0 {
			t.Errorf("%s: posted is %d", name, posted)
		}
	}
}

// Posting and polling in one call does what the two calls do.
func TestPostSpin(t *testing.T) {
	p := connectPair(t)
	i := p.Instance
	must(t, i, "reg_mr", p.pd, bufferAt, 0x2000, 1, mrAt)
	lkey := take[MR](i, mrAt).LKey
	sender, receiver := must(t, i, "ep_qp", p.active), must(t, i, "ep_qp", p.passive)
	sendCQ, recvCQ := must(t, i, "ep_send_cq", p.active), must(t, i, "ep_recv_cq", p.passive)
	put(i, sgeAt, SGE{Address: bufferAt, Length: 64, LKey: lkey})
	put(i, wrAt, RecvWR{WRID: 7, NumSGE: 1})
	if n := must(t, i, "post_recv_spin", receiver, wrAt, 1, sgeAt, 1, postedAt, recvCQ, wcAt, 4, 10); n != 0 {
		t.Errorf("%d completions before there is a message", n)
	}
	put(i, wrAt, SendWR{WRID: 8, Opcode: uint32(rdmacore.OpSend), Flags: uint32(rdmacore.SendSignaled), NumSGE: 1})
	for n := uint64(0); n == 0; n = must(t, i, "spin_cq", recvCQ, wcAt, 4, 1000) {
		if must(t, i, "post_send_spin", sender, wrAt, 1, sgeAt, 1, postedAt, sendCQ, wcAt, 4, 1<<32-1) != 1 ||
			take[WC](i, wcAt).WRID != 8 {
			t.Errorf("completion %+v", take[WC](i, wcAt))
		}
	}
	if take[WC](i, wcAt).WRID != 7 {
		t.Errorf("completion %+v", take[WC](i, wcAt))
	}
	// The queue is of 8 requests.  Twenty are more than are posted and polled in one call, and some of them are posted.
	for n := range Pointer(20) {
		put(i, 0x2000+n*Pointer(unsafe.Sizeof(SendWR{})), take[SendWR](i, wrAt))
	}
	for _, count := range []uint64{12, 20} {
		put(i, postedAt, ^uint64(0))
		expect(t, i, syscall.ENOMEM, "post_send_spin", sender, 0x2000, count, sgeAt, 1, postedAt, sendCQ, wcAt, 4, 10)
		if posted := take[uint64](i, postedAt); posted >= count {
			t.Errorf("%d posted of %d", posted, count)
		}
	}
	end := uint64(len(i.memory))
	for name, c := range map[string]struct {
		words []uint64
		want  syscall.Errno
	}{
		"no QP":               {[]uint64{recvCQ, wrAt, 1, sgeAt, 1, 0, sendCQ, wcAt, 1, 1}, syscall.EBADF},
		"no CQ":               {[]uint64{sender, wrAt, 1, sgeAt, 1, 0, sender, wcAt, 1, 1}, syscall.EBADF},
		"completions outside": {[]uint64{sender, wrAt, 1, sgeAt, 1, 0, sendCQ, end - 8, 1, 1}, syscall.EFAULT},
		"too many":            {[]uint64{sender, wrAt, 1, sgeAt, 1, 0, sendCQ, wcAt, 1<<32 - 1, 1}, syscall.EFAULT},
		"requests outside":    {[]uint64{sender, end, 1, sgeAt, 1, 0, sendCQ, wcAt, 1, 1}, syscall.EFAULT},
		"posted outside":      {[]uint64{sender, wrAt, 1, sgeAt, 1, end, sendCQ, wcAt, 1, 1}, syscall.EFAULT},
	} {
		for _, function := range []string{"post_send_spin", "post_recv_spin"} {
			if got := call(t, i, function, c.words...); got != -int32(c.want) {
				t.Errorf("%s, %s: %d (%v), not %v", function, name, got, i.lastError, c.want)
			}
		}
	}
}

func TestBadRegistrations(t *testing.T) {
	i := newInstance(t, 4096, Config{})
	pd := must(t, i, "alloc_pd", 0)
	for name, c := range map[string]struct {
		words []uint64
		want  syscall.Errno
	}{
		"outside":             {[]uint64{pd, 4096, 1, 1, mrAt}, syscall.EFAULT},
		"past the end":        {[]uint64{pd, 4095, 2, 1, mrAt}, syscall.EFAULT},
		"wraps around":        {[]uint64{pd, 0xffffffff, 0xffffffff, 1, mrAt}, syscall.EFAULT},
		"keys outside":        {[]uint64{pd, 64, 64, 1, 4096}, syscall.EFAULT},
		"keys not aligned":    {[]uint64{pd, 64, 64, 1, mrAt + 4}, syscall.EINVAL},
		"write without local": {[]uint64{pd, 64, 64, 2, mrAt}, syscall.EINVAL},
		"no PD":               {[]uint64{0, 64, 64, 1, mrAt}, syscall.EBADF},
		"by the provider": {
			[]uint64{pd, 64, 64, uint64(rdmacore.AccessLocalWrite | rdmacore.AccessFlushPersistent), mrAt},
			syscall.EOPNOTSUPP,
		},
	} {
		used := i.budget.Used()
		if got := call(t, i, "reg_mr", c.words...); got != -int32(c.want) {
			t.Errorf("%s: %d (%v), not %v", name, got, i.lastError, c.want)
		}
		if now := i.budget.Used(); now != used {
			t.Errorf("%s: it has taken %+v to %+v", name, used, now)
		}
	}
}

// A window, an address handle and a shared queue from the guest's side: made, used, freed by Close or not.
func TestDataPathObjects(t *testing.T) {
	p := connectPair(t)
	i := p.Instance
	put(i, attrAt, SRQAttr{StructSize: uint32(unsafe.Sizeof(SRQAttr{})), MaxWR: 4, MaxSGE: 1})
	srq := must(t, i, "create_srq", p.pd, attrAt)
	put(i, sgeAt, SGE{Address: bufferAt, Length: 8})
	put(i, wrAt, RecvWR{WRID: 1, NumSGE: 1})
	must(t, i, "post_srq_recv", srq, wrAt, 1, sgeAt, 1, postedAt)
	must(t, i, "arm_srq", srq, 2)
	must(t, i, "query_srq", srq, attrAt)
	if attr := take[SRQAttr](i, attrAt); attr.MaxWR < 4 || attr.Limit != 2 {
		t.Errorf("sizes %+v", attr)
	}
	must(t, i, "resize_srq", srq, 8)
	expect(t, i, syscall.EINVAL, "arm_srq", srq, 1<<30)
	must(t, i, "destroy_srq", srq)
	expect(t, i, syscall.EBADF, "destroy_srq", srq)

	mr := must(t, i, "reg_mr", p.pd, bufferAt, 256,
		uint64(rdmacore.AccessLocalWrite|rdmacore.AccessRemoteWrite|rdmacore.AccessMWBind), mrAt)
	if address := take[MR](i, mrAt).Address; address != bufferAt { // and nothing of where that is in the host
		t.Errorf("the region is at %#x", address)
	}
	mw := must(t, i, "alloc_mw", p.pd, 2)
	put(i, wrAt, MWBind{WRID: 7, Address: take[MR](i, mrAt).Address, Length: 64, MR: Handle(mr),
		Access: uint32(rdmacore.AccessRemoteWrite), Flags: uint32(rdmacore.SendSignaled)})
	qp, cq := must(t, i, "ep_qp", p.active), must(t, i, "ep_send_cq", p.active)
	must(t, i, "bind_mw", qp, mw, wrAt)
	must(t, i, "wait_cq", cq, wcAt, 1, timeout)
	if wc := take[WC](i, wcAt); wc.WRID != 7 || wc.Status != 0 || take[MWBind](i, wrAt).RKey == 0 {
		t.Errorf("completion %+v", wc)
	}
	expect(t, i, syscall.EBUSY, "dereg_mr", mr)
	expect(t, i, syscall.EINVAL, "alloc_mw", p.pd, 3)
	expect(t, i, syscall.EBADF, "bind_mw", qp, mr, wrAt)

	attr := AHAttr{IsGlobal: 1, PortNum: 1}
	attr.DGID = [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}
	put(i, attrAt, attr)
	ah := must(t, i, "create_ah", p.pd, attrAt, postedAt)
	if take[AH](i, postedAt).Number == 0 {
		t.Error("no number")
	}
	must(t, i, "destroy_ah", ah)
	must(t, i, "create_ah", p.pd, attrAt, postedAt) // Close frees this and the window
	expect(t, i, syscall.EFAULT, "create_ah_from_wc", p.pd, wcAt, uint64(1<<31), postedAt)
}
