package hostfuncs

import (
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"rdmarun/rdmacore"
)

// hogs make objects until they may not.  Each names what makes one, from an instance that has a PD and a channel.
var hogs = map[string]func(t *testing.T, i *Instance, pd, channel uint64) int32{
	"create_event_channel": func(t *testing.T, i *Instance, _, _ uint64) int32 {
		return call(t, i, "create_event_channel")
	},
	"alloc_pd": func(t *testing.T, i *Instance, _, _ uint64) int32 { return call(t, i, "alloc_pd", 0) },
	"create_cq": func(t *testing.T, i *Instance, _, _ uint64) int32 {
		return call(t, i, "create_cq", 0, 1<<16)
	},
	"create_cq_ex": func(t *testing.T, i *Instance, _, _ uint64) int32 {
		return call(t, i, "create_cq_ex", 0, 1<<16, 0)
	},
	"create_id": func(t *testing.T, i *Instance, _, channel uint64) int32 {
		return call(t, i, "create_id", channel, 0)
	},
	"create_id, synchronous": func(t *testing.T, i *Instance, _, _ uint64) int32 {
		return call(t, i, "create_id", 0, 0)
	},
	"alloc_mw": func(t *testing.T, i *Instance, pd, _ uint64) int32 { return call(t, i, "alloc_mw", pd, 1) },
	"reg_mr": func(t *testing.T, i *Instance, pd, _ uint64) int32 {
		return call(t, i, "reg_mr", pd, bufferAt, 4096, uint64(rdmacore.AccessLocalWrite), mrAt)
	},
	"create_srq": func(t *testing.T, i *Instance, pd, _ uint64) int32 {
		put(i, attrAt, SRQAttr{StructSize: uint32(unsafe.Sizeof(SRQAttr{})), MaxWR: 1 << 14, MaxSGE: 16})
		return call(t, i, "create_srq", pd, attrAt)
	},
	"create_ah": func(t *testing.T, i *Instance, pd, _ uint64) int32 {
		put(i, attrAt, AHAttr{IsGlobal: 1, PortNum: 1, DGID: [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}})
		return call(t, i, "create_ah", pd, attrAt, mrAt)
	},
	"create_ep with a QP": func(t *testing.T, i *Instance, pd, channel uint64) int32 {
		put(i, attrAt, QPInitAttr{
			StructSize: uint32(unsafe.Sizeof(QPInitAttr{})), MaxSendWR: 1 << 12, MaxRecvWR: 1 << 12,
			MaxSendSGE: 4, MaxRecvSGE: 4})
		put(i, infoAt, AddrInfo{
			StructSize:  uint32(unsafe.Sizeof(AddrInfo{})),
			Destination: Address{Family: 2, Port: 9, IP: [16]byte{127, 0, 0, 1}},
		})
		return call(t, i, "create_ep", channel, infoAt, pd, attrAt)
	},
	"bind_addr": func(t *testing.T, i *Instance, _, channel uint64) int32 {
		ep := call(t, i, "create_id", channel, 0)
		if ep < 0 {
			return ep
		}
		put(i, infoAt, Address{Family: 2, IP: [16]byte{127, 0, 0, 1}})
		return call(t, i, "bind_addr", uint64(ep), infoAt)
	},
	"resolve_addr": func(t *testing.T, i *Instance, _, channel uint64) int32 {
		ep := call(t, i, "create_id", channel, 0)
		if ep < 0 {
			return ep
		}
		put(i, infoAt, Address{Family: 2, Port: 9, IP: [16]byte{127, 0, 0, 1}})
		return call(t, i, "resolve_addr", uint64(ep), 0, infoAt, 1000)
	},
	"write_event": func(t *testing.T, i *Instance, _, channel uint64) int32 {
		if i.endpoints.count() == 0 {
			must(t, i, "create_id", channel, 0)
		}
		var ep Handle
		i.endpoints.all(func(handle Handle, _ *endpoint) bool { ep = handle; return false })
		return call(t, i, "write_event", uint64(ep), 0, 0)
	},
	"listen": func(t *testing.T, i *Instance, _, channel uint64) int32 {
		ep := call(t, i, "create_id", channel, 0)
		if ep < 0 {
			return ep
		}
		put(i, infoAt, Address{Family: 2})
		must(t, i, "bind_addr", uint64(ep), infoAt)
		return call(t, i, "listen", uint64(ep), 500)
	},
}

// Whatever a guest makes again and again, it comes to the end of its budget, and the host has not grown by more than
// that.
func TestEveryObjectHasABudget(t *testing.T) {
	for name, hog := range hogs {
		t.Run(name, func(t *testing.T) {
			budget := NewBudget(Limits{Memory: 8 << 20, Handles: 1000, Files: 64, Ports: 100})
			i := newInstance(t, 1<<16, Config{Budget: budget})
			pd, channel := must(t, i, "alloc_pd", 0), must(t, i, "create_event_channel")
			must(t, i, "destroy_cq", must(t, i, "create_cq", 0, 1)) // what the first of all makes stays
			before := dataSize(t)
			made, result := 0, int32(0)
			for ; made < 100_000; made++ {
				if result = hog(t, i, pd, channel); result < 0 {
					break
				}
			}
			if errno := syscall.Errno(-result); errno != syscall.ENOMEM && errno != syscall.EMFILE {
				t.Fatalf("after %d: %d, %v", made, result, i.lastError)
			}
			if !strings.Contains(i.lastError.Error(), "limit") || made == 0 {
				t.Errorf("after %d: %v", made, i.lastError)
			}
			if used := budget.Used(); used.Memory > 8<<20 || used.Handles > 1000 || used.Files > 64 ||
				used.Ports > 100 {
				t.Errorf("used are %+v", used)
			}
			if takesPorts := name == "bind_addr" || name == "resolve_addr"; takesPorts && budget.Used().Ports != 100 {
				t.Errorf("used are %+v", budget.Used())
			}
			const slack = 8 << 20 // the C library's heap grows in steps, too
			if grown := dataSize(t) - before; grown > 8<<20+slack {
				t.Errorf("the process has grown by %d bytes", grown)
			}
			if _, err := i.Close(); err != nil {
				t.Error(err)
			}
			if used := budget.Used(); used != (Cost{}) {
				t.Errorf("after the end %+v are used", used)
			}
		})
	}
}

// The table of costs is about what soft takes: never less, and not twice as much.
func TestCostsAreWhatObjectsTake(t *testing.T) {
	i := newInstance(t, 1<<16, Config{Budget: NewBudget(Limits{Memory: 4 << 30})})
	pd := must(t, i, "alloc_pd", 0)
	channel := must(t, i, "create_event_channel")
	const entries = 1 << 20
	for name, create := range map[string]func(){
		"a CQ": func() { must(t, i, "create_cq", 0, entries) },
		"an SRQ": func() {
			put(i, attrAt, SRQAttr{StructSize: uint32(unsafe.Sizeof(SRQAttr{})), MaxWR: entries, MaxSGE: 32})
			must(t, i, "create_srq", pd, attrAt)
		},
		"a QP": func() {
			put(i, attrAt, QPInitAttr{
				StructSize: uint32(unsafe.Sizeof(QPInitAttr{})), MaxSendWR: entries, MaxRecvWR: entries,
				MaxSendSGE: 8, MaxRecvSGE: 3, MaxInlineData: 400})
			put(i, infoAt, AddrInfo{
				StructSize:  uint32(unsafe.Sizeof(AddrInfo{})),
				Destination: Address{Family: 2, Port: 9, IP: [16]byte{127, 0, 0, 1}},
			})
			must(t, i, "create_ep", channel, infoAt, pd, attrAt)
		},
	} {
		size, charged := dataSize(t), i.budget.Used().Memory
		create()
		grown, cost := dataSize(t)-size, i.budget.Used().Memory-charged
		if grown > cost+1<<20 || cost > 2*grown {
			t.Errorf("%s took %d bytes and was charged %d", name, grown, cost)
		}
	}
}

// What is freed can be had again.
func TestBudgetIsCredited(t *testing.T) {
	budget := NewBudget(Limits{Memory: 1 << 20, Files: 4, Handles: 4, Registered: 8192, Ports: 1})
	i := newInstance(t, 1<<16, Config{Budget: budget})
	pd := must(t, i, "alloc_pd", 0)
	for range 1000 {
		cq := must(t, i, "create_cq", 0, 64)
		must(t, i, "resize_cq", cq, 128)
		must(t, i, "destroy_cq", cq)
		mr := must(t, i, "reg_mr", pd, bufferAt, 8192, uint64(rdmacore.AccessLocalWrite), mrAt)
		expect(t, i, syscall.ENOMEM, "reg_mr", pd, bufferAt, 1, uint64(rdmacore.AccessLocalWrite), mrAt)
		must(t, i, "dereg_mr", mr)
		id := must(t, i, "create_id", 0, 0)
		put(i, infoAt, Address{Family: 2, IP: [16]byte{192, 0, 2, 1}})
		if call(t, i, "bind_addr", id, infoAt) == 0 {
			t.Error("an address that no device has was bound")
		}
		put(i, infoAt, Address{Family: 2, IP: [16]byte{127, 0, 0, 1}})
		must(t, i, "bind_addr", id, infoAt)
		must(t, i, "destroy_id", id)
	}
	cq := must(t, i, "create_cq", 0, 64)
	used := budget.Used()
	expect(t, i, syscall.ENOMEM, "resize_cq", cq, 1<<20)
	if budget.Used() != used {
		t.Errorf("a resize that failed took %+v to %+v", used, budget.Used())
	}
}

// A peer that asks for connections takes nothing of who listens: what may be unread was paid for by listening.
func TestPeersTakeNothingOfTheBudget(t *testing.T) {
	budget := NewBudget(Limits{Memory: 1 << 20})
	victim := newInstance(t, 1<<16, Config{Budget: budget, Serial: 1})
	hostile := instanceOn(t, 1<<16, Config{Provider: victim.provider, Serial: 2})
	channel := must(t, victim, "create_event_channel")
	listener := must(t, victim, "create_id", channel, 0)
	put(victim, infoAt, Address{Family: 2, IP: [16]byte{127, 0, 0, 1}, Port: 7471})
	must(t, victim, "bind_addr", listener, infoAt)
	must(t, victim, "listen", listener, 0)
	used := budget.Used()

	theirs, pd := must(t, hostile, "create_event_channel"), must(t, hostile, "alloc_pd", 0)
	put(hostile, attrAt, QPInitAttr{
		StructSize: uint32(unsafe.Sizeof(QPInitAttr{})), MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1,
	})
	put(hostile, infoAt, AddrInfo{
		StructSize:  uint32(unsafe.Sizeof(AddrInfo{})),
		Destination: Address{Family: 2, Port: 7471, IP: [16]byte{127, 0, 0, 1}},
	})
	for range 300 {
		must(t, hostile, "connect", must(t, hostile, "create_ep", theirs, infoAt, pd, attrAt), 0)
	}
	if budget.Used() != used {
		t.Errorf("the peer's requests took the victim from %+v to %+v", used, budget.Used())
	}
	must(t, victim, "create_cq", 0, 64)
}

// dataSize is how much memory the process has for data, used or not (statm of proc(5)). Go's own heap is subtracted,
// because it is mapped in large steps.
func dataSize(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("no /proc: ", err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[5], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	own := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(own)
	return pages*int64(os.Getpagesize()) - int64(own[0].Value.Uint64())
}

// A listener's requests can wait in the provider, or in the queue that a reader for another endpoint fills. The budget
// is charged for all of them.
func TestUnreadRequestsArePaidFor(t *testing.T) {
	const backlog = 8
	i := newInstance(t, 1<<16, Config{Budget: NewBudget(Limits{Memory: 4 << 20})})
	channel := must(t, i, "create_event_channel")
	listener, other := must(t, i, "create_id", channel, 0), must(t, i, "create_id", channel, 0)
	put(i, infoAt, Address{Family: 2, IP: [16]byte{127, 0, 0, 1}, Port: 7471})
	must(t, i, "bind_addr", listener, infoAt)
	before := i.budget.Used().Memory
	must(t, i, "listen", listener, backlog)
	paid := i.budget.Used().Memory - before

	theirs, pd := must(t, i, "create_event_channel"), must(t, i, "alloc_pd", 0)
	put(i, attrAt, QPInitAttr{
		StructSize: uint32(unsafe.Sizeof(QPInitAttr{})), MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1,
	})
	put(i, infoAt, AddrInfo{
		StructSize:  uint32(unsafe.Sizeof(AddrInfo{})),
		Destination: Address{Family: 2, Port: 7471, IP: [16]byte{127, 0, 0, 1}},
	})
	put(i, eventAt, CMEvent{StructSize: uint32(unsafe.Sizeof(CMEvent{}))})
	for n := range 2 * backlog {
		if n == backlog { // the host reads what there is
			expect(t, i, syscall.ETIMEDOUT, "wait_event", channel, other, eventAt, 100_000_000)
		}
		must(t, i, "connect", must(t, i, "create_ep", theirs, infoAt, pd, attrAt), 0)
	}
	unread := int64(0)
	for call(t, i, "wait_event", channel, listener, eventAt, 100_000_000) == 0 {
		unread++
	}
	if unread != 2*backlog || unread*requestSize > paid {
		t.Errorf("%d requests of %d bytes were unread, and %d bytes paid", unread, requestSize, paid)
	}
}

// A call that fails in its end has had its event, and gives back what was charged for it.
func TestFailedEndGivesItsEventBack(t *testing.T) {
	i := newInstance(t, 1<<16, Config{})
	listener, _, _ := syncPair(t, i)
	client := must(t, i, "create_ep", 0, infoAt, must(t, i, "alloc_pd", 0), attrAt)
	before := i.budget.Used()
	must(t, i, "connect", client, 0)
	if i.budget.Used() == before {
		t.Error("the event costs nothing")
	}
	expect(t, i, syscall.ETIMEDOUT, "complete", client, 1_000_000)
	if i.budget.Used() == before {
		t.Error("an event that is still to come is paid for no more")
	}
	server := must(t, i, "get_request", listener, timeout)
	must(t, i, "reject", server, 0, 0)
	must(t, i, "destroy_ep", server)
	expect(t, i, syscall.ECONNREFUSED, "complete", client, timeout)
	if used := i.budget.Used(); used != before {
		t.Errorf("used are %+v, and were %+v", used, before)
	}
}
