package guest_test

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero/api"

	"rdmarun/host/guest"
	"rdmarun/hostfuncs"
)

var (
	randomTime = flag.Duration("random.time", 0, "how long TestRandomGuests goes on; 0 for a few of them")
	randomSeed = flag.Uint64("random.seed", 1, "the first seed of TestRandomGuests")
)

const (
	randomRounds   = 12 // where no time is given
	randomTogether = 3  // guests of one provider at once
	randomCalls    = 150
	randomLimit    = 300 * time.Millisecond
)

// TestRandomGuests runs modules of random calls to any end, several at the same time. They return, trap, or are
// stopped when their time is up, during a wait or not. All that they created is freed then. newProvider checks this,
// and with "go test -asan" the leak checker does when the process ends.
func TestRandomGuests(t *testing.T) {
	outcomes, made := make(map[guest.Outcome]int), 0
	end := time.Now().Add(*randomTime)
	for seed := *randomSeed; seed < *randomSeed+randomRounds || time.Now().Before(end); seed++ {
		t.Run(fmt.Sprintf("-random.seed=%d", seed), func(t *testing.T) {
			for _, result := range runRandom(t, seed) {
				outcomes[result.Outcome]++
				if result.Outcome == guest.Exited {
					made += result.ExitCode
				}
			}
		})
	}
	t.Logf("%v; objects of those that exited: %d", outcomes, made)
	if outcomes[guest.Exited] == 0 || outcomes[guest.Trapped] == 0 || outcomes[guest.TimedOut] == 0 || made == 0 {
		t.Error("not every end was seen, or nothing was made: that proves little")
	}
}

func runRandom(t *testing.T, seed uint64) []*guest.Result {
	// In a cache of their own: that of the other tests would keep them all.
	r, err := guest.New(testContext(t), guest.RuntimeConfig{Interrupt: guest.InterruptMetered, CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(context.Background()) }) // after the provider's, which counts descriptors
	p := newProvider(t)
	var guests []*guest.Guest
	for n := range uint64(randomTogether) {
		name := fmt.Sprintf("guest-%d", n)
		module, err := r.CompileBytes(testContext(t), name, randomModule(rand.New(rand.NewPCG(seed, n))))
		if err != nil {
			t.Fatal(err)
		}
		running, err := r.Start(testContext(t), module, guest.Config{
			Name: name, Provider: p, Limits: guest.Limits{Time: randomLimit, Memory: 16 << 20},
		})
		if err != nil {
			t.Fatal(err)
		}
		guests = append(guests, running)
	}
	var results []*guest.Result
	for _, each := range guests {
		result, err := each.Wait(testContext(t))
		if err != nil || result.Outcome == guest.Failed {
			t.Errorf("%s: %v %s %v", each.Name(), err, result.Outcome, result.Err)
		}
		results = append(results, &result)
	}
	return results
}

// The memory of a random guest: each struct of the ABI at a place of its own, then room for what the host writes.
const (
	randomStructs = 1 << 10
	randomScratch = 32 << 10
	randomPages   = 4
)

// The parts of the binary format that random guests have (WebAssembly 2.0, chapter 5).
const (
	wasmUnreachable, wasmLoop, wasmIf, wasmEnd, wasmBranch = 0x00, 0x03, 0x04, 0x0b, 0x0c
	wasmCall, wasmGet, wasmSet                             = 0x10, 0x20, 0x21
	wasmLoad, wasmConst32, wasmConst64                     = 0x28, 0x41, 0x42
	wasmGreater, wasmAdd, wasmAnd                          = 0x4a, 0x6a, 0x71
	wasmNothing                                            = 0x40 // the type of a block
)

// randomGuest writes one module.
type randomGuest struct {
	random    *rand.Rand
	functions []hostfuncs.Function
	kinds     map[string]uint32 // of handles: the local with the last that was made
	places    map[string]uint32 // of structs
	code      []byte
}

// The first locals; those of kinds follow.
const (
	localResult = iota
	localMade
	localKinds
)

func randomModule(random *rand.Rand) []byte {
	g := &randomGuest{
		random: random, functions: hostfuncs.Functions(), kinds: make(map[string]uint32),
		places: make(map[string]uint32),
	}
	for _, f := range g.functions {
		for _, parameter := range f.Params {
			if _, known := g.kinds[parameter.Of]; parameter.Type == hostfuncs.HandleOf && !known {
				g.kinds[parameter.Of] = localKinds + uint32(len(g.kinds))
			}
		}
	}
	data := g.structs()
	for n := range randomCalls {
		index := random.IntN(len(g.functions))
		// At first more of what makes something, or there would be little to work on.
		for n < randomCalls/3 && g.makes(g.functions[index].Name) == "" {
			index = random.IntN(len(g.functions))
		}
		g.call(index)
	}
	g.end()
	return g.module(data)
}

// structs fills a memory with one of each, with numbers that often make sense.
func (g *randomGuest) structs() []byte {
	data := make([]byte, randomScratch-randomStructs)
	for at := range data {
		if g.random.IntN(8) == 0 {
			data[at] = byte(g.number())
		}
	}
	at := uint32(0)
	for _, s := range hostfuncs.Structs() {
		g.places[s.Name] = randomStructs + at
		for _, field := range s.Fields {
			value := g.number()
			switch {
			case field.Name == "struct_size":
				value = s.Size
			case field.Handle:
				value = 0
			}
			switch field.Type {
			case "u8":
				data[at+field.Offset] = byte(value)
			case "u16":
				binary.LittleEndian.PutUint16(data[at+field.Offset:], uint16(value))
			case "u32", "i32":
				binary.LittleEndian.PutUint32(data[at+field.Offset:], value)
			case "u64":
				binary.LittleEndian.PutUint64(data[at+field.Offset:], uint64(value))
			}
		}
		at += (s.Size + 15) &^ 7
	}
	return data
}

// number is small, or where something ends.
func (g *randomGuest) number() uint32 {
	switch g.random.IntN(10) {
	case 0:
		return [...]uint32{64, 4096, 7471, 1 << 16, 1 << 20, 1<<31 - 1, 1 << 31, 1<<32 - 1}[g.random.IntN(8)]
	case 1:
		return g.random.Uint32()
	}
	return uint32(g.random.IntN(5))
}

// call calls a function and keeps what it made.
func (g *randomGuest) call(index int) {
	f := g.functions[index]
	for n, kind := range f.Signature() {
		parameter := hostfuncs.Param{}
		if n < len(f.Params) {
			parameter = f.Params[n]
		}
		g.argument(parameter, kind)
	}
	g.code = append(g.code, wasmCall)
	g.code = binary.AppendUvarint(g.code, uint64(index))
	g.code = append(g.code, wasmSet, localResult)
	if kind := g.makes(f.Name); kind != "" {
		g.code = append(g.code, wasmGet, localResult, wasmConst32, 0, wasmGreater, wasmIf, wasmNothing)
		g.code = append(g.code, wasmGet, localResult, wasmSet, byte(g.kinds[kind]))
		g.code = append(g.code, wasmGet, localMade, wasmConst32, 1, wasmAdd, wasmSet, localMade, wasmEnd)
	}
}

// makes is the kind of the handle that a function returns, going by its name; "" when it returns none.
func (g *randomGuest) makes(name string) string {
	for _, verb := range []string{"create_", "alloc_", "reg_", "open_"} {
		if kind, ok := strings.CutPrefix(name, verb); ok && g.kinds[kind] != 0 {
			return kind
		}
	}
	return ""
}

func (g *randomGuest) argument(parameter hostfuncs.Param, kind api.ValueType) {
	switch likely := g.random.IntN(10) > 0; {
	case kind == api.ValueTypeI64: // a time: to wait a little, not at all, or forever
		g.code = append(g.code, wasmConst64)
		forever := g.random.IntN(20) == 0
		g.code = appendSigned(g.code, map[bool]int64{false: int64(g.random.IntN(2)) * 100_000, true: -1}[forever])
	case parameter.Type == hostfuncs.HandleOf && likely:
		g.code = append(g.code, wasmGet, byte(g.kinds[parameter.Of]))
	case parameter.Type == hostfuncs.HandleOf:
		g.code = append(g.code, wasmGet, byte(localKinds+g.random.IntN(len(g.kinds))))
	case parameter.Type == hostfuncs.Out && likely:
		g.constant(randomScratch + uint32(g.random.IntN(64))*512)
	case parameter.Type != hostfuncs.U32 && likely && g.places[parameter.Of] != 0:
		g.constant(g.places[parameter.Of])
	default:
		g.constant(g.number())
	}
}

func (g *randomGuest) constant(value uint32) {
	g.code = append(g.code, wasmConst32)
	g.code = appendSigned(g.code, int64(int32(value)))
}

// end ends the guest in one of the ways there are.
func (g *randomGuest) end() {
	switch g.random.IntN(6) {
	case 0:
		g.code = append(g.code, wasmUnreachable)
	case 1:
		g.constant(1 << 31)
		g.code = append(g.code, wasmLoad, 2, 0, wasmSet, localResult)
	case 2:
		g.code = append(g.code, wasmLoop, wasmNothing, wasmBranch, 0, wasmEnd)
	case 3: // it returns
	default:
		g.code = append(g.code, wasmGet, localMade)
		g.constant(127)
		g.code = append(g.code, wasmAnd, wasmCall)
		g.code = binary.AppendUvarint(g.code, uint64(len(g.functions))) // proc_exit
	}
	g.code = append(g.code, wasmEnd)
}

// module puts the code of _start into a module that imports every host function and proc_exit.
func (g *randomGuest) module(data []byte) []byte {
	var types, imports [][]byte
	add := func(module, name string, parameters []api.ValueType, results ...api.ValueType) {
		imports = append(
			imports,
			slices.Concat(wasmName(module), wasmName(name), []byte{0}, binary.AppendUvarint(nil, uint64(len(types)))),
		)
		types = append(types, slices.Concat([]byte{0x60}, wasmBytes(parameters), wasmBytes(results)))
	}
	for _, f := range g.functions {
		add("rdma", f.Name, f.Signature(), api.ValueTypeI32)
	}
	add("wasi_snapshot_preview1", "proc_exit", []api.ValueType{api.ValueTypeI32})
	start := uint64(len(types))
	types = append(types, []byte{0x60, 0, 0})
	locals := []byte{1, byte(localKinds + len(g.kinds)), api.ValueTypeI32}
	at := appendSigned([]byte{0, wasmConst32}, randomStructs)
	module := []byte("\x00asm\x01\x00\x00\x00")
	for _, section := range []struct {
		id    byte
		items [][]byte
	}{
		{1, types},
		{2, imports},
		{3, [][]byte{binary.AppendUvarint(nil, start)}},
		{5, [][]byte{{1, randomPages, randomPages}}},
		{7, [][]byte{
			slices.Concat(wasmName("_start"), []byte{0}, binary.AppendUvarint(nil, start)),
			slices.Concat(wasmName("memory"), []byte{2, 0}),
		}},
		{10, [][]byte{wasmBytes(slices.Concat(locals, g.code))}},
		{11, [][]byte{slices.Concat(at, []byte{wasmEnd}, wasmBytes(data))}},
	} {
		body := binary.AppendUvarint(nil, uint64(len(section.items)))
		module = append(module, section.id)
		module = append(module, wasmBytes(append(body, slices.Concat(section.items...)...))...)
	}
	return module
}

func wasmName(name string) []byte { return wasmBytes([]byte(name)) }

// wasmBytes are bytes behind their number.
func wasmBytes(b []byte) []byte {
	return append(binary.AppendUvarint(nil, uint64(len(b))), b...)
}

// appendSigned appends a signed LEB128.
func appendSigned(b []byte, value int64) []byte {
	for {
		low := byte(value & 0x7f)
		value >>= 7
		if (value == 0 && low&0x40 == 0) || (value == -1 && low&0x40 != 0) {
			return append(b, low)
		}
		b = append(b, low|0x80)
	}
}
