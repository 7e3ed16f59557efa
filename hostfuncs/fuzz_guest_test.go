package hostfuncs

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"unicode"
	"unsafe"

	"rdmarun/rdmacore"
)

// Where things are in the memory of a guest that is made up by the fuzzer.
const (
	fuzzScratch = 0x100  // structs of the step at hand
	fuzzBuffers = 0x8000 // what is registered and moved, up to the end
	fuzzPages   = 0x10000
)

// fuzzGuest is a guest with a random program.  One goroutine drives it.
type fuzzGuest struct {
	*Instance
	world  *fuzzWorld
	number int
	region *rdmacore.Memory
	guard  unsafe.Pointer // an inaccessible page before the region; nil where there was no room for it
	random *rand.Rand     // of the step at hand
	next   Pointer        // where the next struct of the step is put
	given  []fuzzRange    // the structs of the step, for distortion
	seen   []uint64       // handles it was ever given, stale ones among them
	keys   []fuzzKey      // of its own regions
	groups []fuzzPeer     // datagram peers and groups that it has heard of
	worked map[string]int
}

type fuzzRange struct{ at, size uint32 }

// fuzzKey is memory that a guest has registered.
type fuzzKey struct {
	address    uint64
	lkey, rkey uint32
	handle     Handle
}

// fuzzPeer is the way to a datagram queue pair or a group.
type fuzzPeer struct {
	ah        AHAttr
	qpn, qkey uint32
}

func (g *fuzzGuest) one(in int) bool { return g.random.IntN(in) == 0 }

// chosen is one of some things; the zero one when there are none.
func chosen[T any](g *fuzzGuest, from []T) (one T) {
	if len(from) > 0 {
		one = from[g.random.IntN(len(from))]
	}
	return one
}

// latest is chosen with a liking for what came last.
func latest[T any](g *fuzzGuest, from []T) T {
	if len(from) > 4 && !g.one(4) {
		from = from[len(from)-4:]
	}
	return chosen(g, from)
}

// left is place for so many bytes, aligned as structs are.
func (g *fuzzGuest) room(size uint32) Pointer {
	if uint32(g.next)+size > fuzzBuffers {
		g.next = fuzzScratch
	}
	at := g.next
	g.next += Pointer(size+7) &^ 7
	clear(g.memory[at : uint32(at)+size])
	g.given = append(g.given, fuzzRange{uint32(at), size})
	return at
}

// give puts values into the guest's memory.
func give[T any](g *fuzzGuest, values ...T) uint64 {
	var one T
	size := uint32(unsafe.Sizeof(one))
	at := g.room(size * uint32(len(values)))
	for n, value := range values {
		put(g.Instance, at+Pointer(uint32(n)*size), value)
	}
	return uint64(at)
}

// sized is a struct for the host to write, with its size as an argument.
func sized[T any](g *fuzzGuest) Pointer {
	var one T
	at := Pointer(give(g, one))
	put(g.Instance, at, uint32(unsafe.Sizeof(one)))
	return at
}

// handles are those of a guest's live objects of a kind.
func (g *fuzzGuest) handles(kind handleKind) []Handle {
	switch kind {
	case kindChannel:
		return live(&g.channels)
	case kindEP:
		return live(&g.endpoints)
	case kindPD:
		return live(&g.pds)
	case kindMR:
		return live(&g.mrs)
	case kindCQ:
		return live(&g.cqs)
	case kindQP:
		return live(&g.qps)
	case kindEvent:
		return live(&g.events)
	case kindSRQ:
		return live(&g.srqs)
	case kindAH:
		return live(&g.ahs)
	case kindMW:
		return live(&g.mws)
	case kindEventFD:
		return live(&g.eventfds)
	case kindStream:
		return live(&g.streams)
	case kindDevice:
		return live(&g.devices)
	case kindCompChannel:
		return live(&g.compChannels)
	}
	return nil
}

func live[T comparable](table *handleTable[T]) (handles []Handle) {
	table.all(func(handle Handle, _ T) bool {
		handles = append(handles, handle)
		return true
	})
	return handles
}

// some is a live handle of a kind; 0 when there is none.
func (g *fuzzGuest) some(kind handleKind) uint64 { return uint64(chosen(g, g.handles(kind))) }

// perhaps is some, or now and then 0.
func (g *fuzzGuest) perhaps(kind handleKind) uint64 {
	if g.one(4) {
		return 0
	}
	return g.some(kind)
}

func kindOf(name string) handleKind {
	for kind, each := range kindNames {
		if each == name {
			return kind
		}
	}
	return 0
}

// call calls a host function as wazero does, and judges the result.  Now and then the arguments are not those that
// the step meant.
func (g *fuzzGuest) call(name string, words ...uint64) int32 {
	f := g.world.functions[name]
	if g.full(name) {
		return -int32(syscall.ENOSPC)
	}
	words = slices.Clone(words)
	if g.one(30) {
		g.distort(f, words)
	}
	g.bound(f, words)
	stale := g.stale(f, words)
	g.world.tracef("guest %d: %s", g.number, traced{g, f, words})
	result := int32(g.invoke(f, words))
	g.world.tracef(" = %d\n", result)
	switch {
	case result < 0 && !g.world.errnos[-result]:
		g.world.failf("%s: the result %d is no errno of the ABI (%v)", name, result, g.lastError)
	case result >= 0 && stale != "":
		g.world.failf("%s succeeded with %s", name, stale)
	case result < 0:
		return result
	}
	g.worked[name]++
	if strings.Contains(f.Result, "handle") {
		g.remember(uint64(result))
	}
	return result
}

// invoke calls a function as wazero does: the upper half of an i32 is garbage, the result is extended with zeros.
func (g *fuzzGuest) invoke(f *Function, words []uint64) uint64 {
	stack := append(slices.Clone(words), 0)
	for at, p := range f.Params {
		if p.Type != I64 {
			stack[at] = stack[at]&math.MaxUint32 | uint64(g.random.Uint32())<<32
		}
	}
	f.implementation()(g.Context(g.ctx), stack)
	if stack[0] > math.MaxUint32 {
		g.world.failf("%s: the result %#x is not extended with zeros", f.Name, stack[0])
	}
	return stack[0]
}

func (g *fuzzGuest) remember(handle uint64) {
	if handle != 0 {
		g.seen = append(g.seen, handle)
		g.world.share(func(k *fuzzKnown) { k.handles = append(k.handles, handle) })
	}
}

// full reports whether the guest has enough of what a function makes.
func (g *fuzzGuest) full(name string) bool {
	const most = 24
	if !strings.HasPrefix(name, "create_") && !strings.HasPrefix(name, "alloc_") && !strings.HasPrefix(name, "reg_") &&
		name != "open_device" {
		return false
	}
	for kind := range kindNames {
		if len(g.handles(kind)) > most {
			g.call(map[handleKind]string{kindChannel: "destroy_event_channel", kindEP: "destroy_ep",
				kindPD: "dealloc_pd",
				kindMR: "dereg_mr", kindCQ: "destroy_cq", kindQP: "destroy_qp", kindEvent: "ack_event",
				kindSRQ: "destroy_srq",
				kindAH:  "destroy_ah", kindMW: "dealloc_mw", kindEventFD: "destroy_eventfd", kindStream: "stream_close",
				kindDevice: "close_device", kindCompChannel: "destroy_comp_channel"}[kind], g.some(kind))
			return true
		}
	}
	return false
}

// alternative reports whether a handle is of another kind that the parameter takes, which its text names.
func (g *fuzzGuest) alternative(p Param, handle Handle) bool {
	for kind, name := range kindNames {
		words := strings.FieldsFunc(p.Doc, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) })
		if slices.Contains(words, name) && slices.Contains(g.handles(kind), handle) {
			return true
		}
	}
	return false
}

// stale says which handle of the arguments names nothing of the guest's; a call with it must not succeed.
func (g *fuzzGuest) stale(f *Function, words []uint64) string {
	for at, p := range f.Params {
		handle := Handle(uint32(words[at]))
		if g.alternative(p, handle) {
			continue
		}
		if p.Type == HandleOf && handle != 0 && !slices.Contains(g.handles(kindOf(p.Of)), handle) {
			return fmt.Sprintf("%s %#x, which is none", p.Name, uint32(handle))
		}
	}
	return ""
}

// bound keeps a call from taking real time. A wait without a timeout is one that a request to stop ends, and no name
// server is queried.
func (g *fuzzGuest) bound(f *Function, words []uint64) {
	if last := len(words) - 1; f.Blocking && last >= 0 && f.Params[last].Type == I64 {
		switch {
		case g.world.concurrent:
			words[last] %= 50_000
		case int64(words[last]) >= 0:
		case g.stopDelivered:
			words[last] = 1000
		default:
			g.RequestStop()
		}
	}
	for at, p := range f.Params {
		const flags = 4
		if query := uint64(uint32(words[at])); p.Of == "addr_query" && query+8 <= uint64(len(g.memory)) {
			const numericHost = 2
			g.memory[query+flags] |= numericHost
		}
		if info := uint64(uint32(words[at])); g.world.concurrent && p.Of == "addr_info" &&
			info+16 <= uint64(len(g.memory)) {
			copy(g.memory[info+12:], []byte{1, 0, 0, 0}) // timeout_ms
		}
	}
}

// distort changes an argument, or a struct that one of them points to.
func (g *fuzzGuest) distort(f *Function, words []uint64) {
	if len(g.given) > 0 && g.one(2) {
		in := chosen(g, g.given)
		at := in.at + g.random.Uint32N(max(in.size, 1))
		if at+4 <= uint32(len(g.memory)) {
			put(g.Instance, Pointer(at&^3), g.number32())
		}
	} else if len(words) > 0 {
		at := g.random.IntN(len(words))
		words[at] = g.argument(f.Params[at])
	}
}

// number32 is a number that something may depend on.
func (g *fuzzGuest) number32() uint32 {
	if !g.one(5) {
		return g.random.Uint32N(9)
	}
	if g.one(8) {
		return g.random.Uint32()
	}
	return chosen(g, []uint32{16, 63, 64, 65, 127, 128, 255, 256, 257, 1000, 1024, 1025, 4095, 4096, 4097, 65535, 65536,
		1<<20 + 1, 1<<24 - 1, 1 << 24, 1 << 30, 1<<31 - 1, 1 << 31, 1<<31 + 1, math.MaxUint32 - 7, math.MaxUint32})
}

func (g *fuzzGuest) number64() uint64 {
	switch g.random.IntN(6) {
	case 0:
		return g.random.Uint64()
	case 1:
		return chosen(g, []uint64{1 << 32, 1<<32 - 1, 1 << 47, 1 << 63, 1<<63 - 1, math.MaxUint64, math.MaxUint64 - 7})
	}
	return uint64(g.number32())
}

// argument draws what a function is given for a parameter.
func (g *fuzzGuest) argument(p Param) uint64 {
	switch p.Type {
	case HandleOf:
		return g.handleFor(kindOf(p.Of))
	case I64:
		return chosen(g, []uint64{0, 0, 0, 1, 1000, 100_000, 5_000_000, g.number64()})
	case U32:
		return uint64(g.enumerated(p.Of))
	}
	switch {
	case g.one(12):
		return 0
	case g.one(12):
		end := uint64(len(g.memory))
		return chosen(g, []uint64{
			4, 12, fuzzScratch + 4, end - 8, end - 4, end, end + 8, 1 << 31, math.MaxUint32 - 7, math.MaxUint32,
		})
	}
	for at := range g.world.structs {
		if s := &g.world.structs[at]; s.Name == p.Of {
			count := uint32(1)
			if p.Doc == "an array" || strings.HasPrefix(p.Doc, "an array") {
				count += g.random.Uint32N(8)
			}
			start := g.room(s.Size * count)
			for n := range count {
				g.fill(s, uint32(start)+n*s.Size)
			}
			return uint64(start)
		}
	}
	if p.Of == "text" || p.Of == "u64" || g.one(2) {
		at := g.room(512)
		copy(
			g.memory[at:],
			chosen(g, []string{"create_ep", "x", "no such thing", "\x1b[2J\a", strings.Repeat("long", 99)}),
		)
		return uint64(at)
	}
	return uint64(fuzzBuffers + g.random.Uint32N(uint32(len(g.memory))-fuzzBuffers)) // "bytes"
}

// handleFor is mostly a live handle of the kind, and else a stale one, another guest's, or none at all.
func (g *fuzzGuest) handleFor(kind handleKind) uint64 {
	if !g.one(6) {
		if kind == kindEP && g.one(4) {
			return uint64(chosen(g, append(g.handles(kindDevice), 0))) // 0: the default device
		}
		return g.some(kind)
	}
	switch g.random.IntN(4) {
	case 0:
		return chosen(g, g.seen)
	case 1:
		return chosen(g, g.world.heard().handles)
	case 2:
		return g.some(handleKind(1 + g.random.IntN(len(kindNames))))
	}
	return uint64(g.number32())
}

// enumerated is a value of an enum, or a number where there is none.
func (g *fuzzGuest) enumerated(name string) uint32 {
	for at := range g.world.enums {
		e := &g.world.enums[at]
		if e.Name != name || len(e.Values) == 0 || g.one(16) {
			continue
		}
		value := chosen(g, e.Values).Value
		for e.Flags && g.one(2) {
			value |= chosen(g, e.Values).Value
		}
		return value
	}
	return g.number32()
}

// fill draws the fields of a struct.
func (g *fuzzGuest) fill(s *Struct, at uint32) {
	for n := range s.Fields {
		f := &s.Fields[n]
		to := g.memory[at+f.Offset:][:f.Size]
		switch {
		case f.Name == "struct_size":
			size := s.Size
			if g.one(16) {
				size = chosen(g, []uint32{0, 4, 8, 12, size - 8, size + 8, 1 << 16, 1<<16 + 8, math.MaxUint32})
			}
			store(to, uint64(size))
		case f.Handle:
			if !g.one(3) {
				kind := fieldKind(f)
				if f.Name == "handle" {
					kind = handleKind(1 + g.random.IntN(len(kindNames)))
				}
				store(to, g.handleFor(kind))
			}
		case f.Type == "address":
			put(g.Instance, Pointer(at+f.Offset), g.address())
		case f.Count > 0:
			if g.one(4) {
				for each := range to {
					to[each] = byte(g.random.Uint32())
				}
			}
		case strings.HasPrefix(f.Name, "reserved") && !g.one(16):
		case f.Enum != "":
			store(to, uint64(g.enumerated(f.Enum)))
		default:
			g.fillField(f, to, at)
		}
	}
}

func fieldKind(f *Field) handleKind {
	switch f.Name {
	case "send_cq", "recv_cq":
		return kindCQ
	case "listener":
		return kindEP
	case "held":
		return kindEvent
	}
	return kindOf(f.Name)
}

// fillField draws what names of fields say more of than their types.
func (g *fuzzGuest) fillField(f *Field, to []byte, at uint32) {
	for n := range g.world.structs {
		if s := &g.world.structs[n]; s.Name == f.Type {
			g.fill(s, at+f.Offset)
			return
		}
	}
	known := g.world.heard()
	key, own := chosen(g, known.keys), chosen(g, g.keys)
	value := g.number64()
	switch f.Name {
	case "lkey":
		value = uint64(own.lkey)
	case "rkey", "imm_data":
		value = uint64(key.rkey)
	case "remote_addr":
		value = key.address + uint64(g.random.Uint32N(64))
	case "addr":
		value = fuzzBuffers + uint64(g.random.Uint32N(uint32(len(g.memory))-fuzzBuffers))
	case "num_sge":
		value = uint64(g.random.Uint32N(3))
	case "first_sge":
		value = 0
	case "dest_qp_num", "remote_qpn", "src_qp", "qp_num":
		value = uint64(chosen(g, known.qpns))
	case "length":
		value = uint64(g.random.Uint32N(256))
	case "ah":
		value = uint64(g.random.Uint32N(9))
	}
	if g.one(24) {
		value = g.number64()
	}
	store(to, value)
}

// store writes a number of 1, 2, 4 or 8 bytes.
func store(to []byte, value uint64) {
	for at := range to {
		to[at] = byte(value)
		value >>= 8
	}
}

// address is mostly that of the device, with a port on which a guest listens.
func (g *fuzzGuest) address() Address {
	known := g.world.heard()
	address := known.device
	address.Port = latest(g, known.ports).number
	switch g.random.IntN(12) {
	case 0:
		return g.group()
	case 1:
		return Address{}
	case 2:
		address.Port = uint16(g.random.Uint32())
	case 3:
		address = Address{Family: familyIPv6, IP: [16]byte{15: 1}, Port: address.Port}
	case 4:
		address = Address{Family: familyIPv4, IP: [16]byte{192, 0, 2, 9}, Port: address.Port} // no host has it
	case 5:
		address.Family = uint16(g.number32())
	}
	return address
}

func (g *fuzzGuest) group() Address {
	return Address{Family: familyIPv4, IP: [16]byte{239, 1, 2, byte(g.random.IntN(3))}}
}

// traced is a call as a failure shows it, with what its structs hold.
type traced struct {
	*fuzzGuest
	f     *Function
	words []uint64
}

func (t traced) String() string {
	var text strings.Builder
	text.WriteString(t.f.Name + "(")
	for at, p := range t.f.Params {
		if at > 0 {
			text.WriteString(", ")
		}
		fmt.Fprintf(&text, "%s %#x", p.Name, t.words[at])
		for n := range t.world.structs {
			if s := &t.world.structs[n]; s.Name == p.Of && p.Type != Out {
				text.WriteString(t.fields(s, uint64(uint32(t.words[at]))))
			}
		}
	}
	text.WriteString(")")
	return text.String()
}

// fields are those of a struct that are not 0.
func (t traced) fields(s *Struct, at uint64) string {
	if at == 0 || at+uint64(s.Size) > uint64(len(t.memory)) {
		return ""
	}
	var fields []string
	for _, f := range s.Fields {
		var value uint64
		given := t.memory[at+uint64(f.Offset):][:f.Size]
		if len(given) > 8 {
			fields = append(fields, fmt.Sprintf("%s %x", f.Name, strings.TrimRight(string(given), "\x00")))
			continue
		}
		for n := range given {
			value |= uint64(given[n]) << (8 * n)
		}
		if value != 0 {
			fields = append(fields, fmt.Sprintf("%s %#x", f.Name, value))
		}
	}
	return "{" + strings.Join(fields, ", ") + "}"
}
