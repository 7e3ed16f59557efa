package hostfuncs

import (
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"rdmarun/rdmacore"
)

// Where the structs of the later functions are.
const (
	addressAt = 0xa00
	eceAt     = 0xa40
	extraAt   = 0xa80
	queryAt   = 0xb00
	resultAt  = 0xd00
	srqAttrAt = 0x3000
	ahAttrAt  = 0x3040
	bindAt    = 0x3080
	asyncAt   = 0x30c0
	portAt    = 0x3100
)

// Any call with any arguments returns a result, and Close frees whatever has come of it.
func TestAnyCallsWithAnyArguments(t *testing.T) {
	const calls = 20_000
	functions, worked, lacking := hammered(), make(map[string]int), make(map[string]bool)
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 7))
		// On a virtual clock, so that what waits takes no time.
		p := connectPair(t, rdmacore.WithVirtualClock(), rdmacore.WithSeed(seed))
		i, port := p.Instance, take[AddrInfo](p.Instance, infoAt).Destination.Port
		handles := []uint64{0, 1, 0xffffffff, p.channel, p.pd, p.listener, p.active, p.passive}
		for range calls {
			f := &functions[random.IntN(len(functions))]
			if strings.HasPrefix(f.Name, "destroy_") && random.IntN(8) != 0 || f.Name == "migrate_id" && random.IntN(8) != 0 {
				continue // or nothing would last long enough to connect
			}
			prepare(i, random, port)
			words := make([]uint64, len(f.Params), len(f.Params)+1)
			for at, p := range f.Params {
				words[at] = argument(random, p, handles)
			}
			if f.Name == "wait_event" && random.IntN(4) != 0 {
				words[1] = 0 // of any endpoint
			}
			result := call(t, i, f.Name, words...)
			if result < -4095 {
				t.Fatalf("%s%v is %d", f.Name, words, result)
			}
			if result >= 0 {
				worked[f.Name]++
			}
			if result == -int32(syscall.ENOSYS) {
				lacking[f.Name] = true
			}
			if f.Name == "wait_event" && result == 0 && words[2] == eventAt {
				handles = append(handles, uint64(take[CMEvent](i, eventAt).EP))
			}
			if result > 1<<16 {
				handles = append(handles, uint64(result))
			}
		}
		if _, err := i.Close(); err != nil {
			t.Error(err)
		}
		if live := i.provider.Live(); live.Total() != 0 {
			t.Errorf("seed %d left %s", seed, live)
		}
	}
	t.Log(worked)
	// Else the arguments were too wild to prove much.  Other functions work at the mercy of chance or of time.
	for _, name := range []string{"alloc_pd", "connect", "create_ah", "create_cq", "create_ep", "create_event_channel",
		"create_id", "create_srq", "dereg_mr", "getaddrinfo", "hold_events", "poll_cq", "post_recv", "post_send", "reg_mr", "wait_event", "write_event"} {
		if worked[name] == 0 && !lacking[name] {
			t.Errorf("%s never worked", name)
		}
	}
}

// hammered are all functions, those that make things several times.
func hammered() []Function {
	all := Functions()
	for _, f := range Functions() {
		switch f.Name {
		case "create_ep", "reg_mr", "alloc_pd", "create_cq", "post_send", "post_recv", "listen", "connect", "wait_event", "accept", "reject":
			all = append(all, f, f, f, f, f, f)
		}
	}
	return all
}

// prepare puts structs that make sense, mostly, where argument points.
func prepare(i *Instance, random *rand.Rand, port uint16) {
	put(i, infoAt, AddrInfo{StructSize: uint32(unsafe.Sizeof(AddrInfo{})), Flags: random.Uint32N(3), TimeoutMS: 10,
		Source:      Address{Family: uint16(random.IntN(2) * familyIPv4), Port: uint16(7000 + random.IntN(9))},
		Destination: Address{Family: familyIPv4, Port: port, IP: [16]byte{127, 0, 0, 1}}})
	put(i, attrAt, QPInitAttr{StructSize: uint32(unsafe.Sizeof(QPInitAttr{})), MaxSendWR: random.Uint32N(9),
		MaxRecvWR: random.Uint32N(9), MaxSendSGE: random.Uint32N(3), MaxRecvSGE: random.Uint32N(3)})
	put(i, asyncAt, AsyncEvent{StructSize: uint32(unsafe.Sizeof(AsyncEvent{}))})
	put(i, portAt, PortAttr{StructSize: uint32(unsafe.Sizeof(PortAttr{}))})
	put(i, eventAt, CMEvent{StructSize: uint32(unsafe.Sizeof(CMEvent{}))})
	put(i, addressAt, Address{Family: familyIPv4, Port: port, IP: [16]byte{127, 0, 0, 1}})
	query := AddrQuery{StructSize: uint32(unsafe.Sizeof(AddrQuery{})), Flags: 2} // numeric: no name server is asked
	copy(query.Node[:], "127.0.0.1")
	put(i, queryAt, query)
	put(i, resultAt, AddrResult{StructSize: uint32(unsafe.Sizeof(AddrResult{}))})
	put(i, eceAt, ECE{StructSize: uint32(unsafe.Sizeof(ECE{})), VendorID: 1})
	put(i, extraAt, QPExtra{StructSize: uint32(unsafe.Sizeof(QPExtra{}))})
	put(i, wrAt, SendWR{Opcode: random.Uint32N(9), Flags: random.Uint32N(16), FirstSGE: random.Uint32N(2), NumSGE: random.Uint32N(3),
		RKey: random.Uint32(), RemoteAddress: random.Uint64()})
	put(i, srqAttrAt, SRQAttr{StructSize: uint32(unsafe.Sizeof(SRQAttr{})), MaxWR: random.Uint32N(9), MaxSGE: random.Uint32N(3)})
	put(i, ahAttrAt, AHAttr{IsGlobal: 1, PortNum: 1, DGID: [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}})
	put(i, bindAt, MWBind{Address: random.Uint64(), Length: random.Uint64N(2), Access: random.Uint32N(16)})
	put(i, sgeAt, SGE{Address: random.Uint64N(1 << 17), Length: random.Uint32N(1 << 16), LKey: random.Uint32()})
}

// pick chooses a handle, mostly one of the right kind: the first, or a late one that is not stale yet.
func pick(random *rand.Rand, kind string, handles []uint64) uint64 {
	var right []uint64
	for at, handle := range handles {
		if HandleKind(handle>>(indexBits+generationBits)).String() == kind && (at < 8 || at > len(handles)-200) {
			right = append(right, handle)
		}
	}
	switch {
	case random.IntN(10) == 0 || len(right) == 0:
		return handles[random.IntN(len(handles))]
	case random.IntN(2) == 0:
		return right[0]
	}
	return right[random.IntN(len(right))]
}

func argument(random *rand.Rand, p Param, handles []uint64) uint64 {
	pointers := []uint64{infoAt, attrAt, eventAt, mrAt, wrAt, sgeAt, wcAt, postedAt, bufferAt, 0, 1<<16 - 8, 1 << 16, 0xfffffff8}
	switch p.Type {
	case HandleOf:
		return pick(random, p.Of, handles)
	case I64:
		return []uint64{0, 0, 0, 100_000}[random.IntN(4)]
	case U32:
		return []uint64{0, 1, 2, 16, 64, random.Uint64() | 1<<31}[random.IntN(6)]
	}
	if at, ok := map[string]uint64{"addr_info": infoAt, "qp_init_attr": attrAt, "cm_event": eventAt, "mr": mrAt,
		"conn_param": 0, "address": addressAt, "addr_query": queryAt, "addr_result": resultAt, "ece": eceAt, "qp_extra": extraAt, "bytes": bufferAt, "send_wr": wrAt, "recv_wr": wrAt, "sge": sgeAt, "wc": wcAt,
		"srq_attr": srqAttrAt, "ah_attr": ahAttrAt, "mw_bind": bindAt, "async_event": asyncAt, "port_attr": portAt}[p.Of]; ok && random.IntN(8) != 0 {
		return at
	}
	return pointers[random.IntN(len(pointers))]
}
