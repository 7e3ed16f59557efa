package guest

import (
	"context"
	"encoding/binary"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sort"
	"strings"
	"time"
	"unsafe"

	"github.com/tetratelabs/wazero/api"

	"rdmarun/host/printable"
)

// wazero reports the frames of a stack only with a panic. It reports none of a guest that continues, and none of a
// full stack. So they are read here from the stack that newStack has created.

// maxFrames is how many calls of a stack are shown, from the innermost; those of one function to itself are one.
const maxFrames = 16

// frame is a call: a function by its index in the module, and an offset in its code section.
type frame struct {
	function uint32
	offset   uint64
}

// machine is what wazero knows of a module's machine code.
type machine struct {
	define    func(function uint32) api.FunctionDefinition
	code      *[]byte
	functions *[]int // where each of the module's own functions begins in the code
	imported  *uint32
	addresses *[]uintptr // ascending, each with an offset in the module
	offsets   *[]uint64
}

// machineOf finds what wazero has of the module of a function; nil when this wazero has it elsewhere.
func machineOf(engine reflect.Value) *machine {
	compiled := pointed(pointed(engine, "parent"), "parent")
	m := &machine{}
	if !locate(pointed(compiled, "executables"), "executable", &m.code) ||
		!locate(compiled, "functionOffsets", &m.functions) ||
		!locate(pointed(compiled, "module"), "ImportFunctionCount", &m.imported) ||
		!m.locateDefinitions(pointed(compiled, "module")) ||
		!locate(compiled.FieldByName("sourceMap"), "executableOffsets", &m.addresses) ||
		!locate(compiled.FieldByName("sourceMap"), "wasmBinaryOffsets", &m.offsets) {
		return nil
	}
	return m
}

// locateDefinitions finds what shows a function's type.
func (m *machine) locateDefinitions(module reflect.Value) bool {
	method := reflect.NewAt(module.Type(), module.Addr().UnsafePointer()).MethodByName("FunctionDefinition")
	if !method.IsValid() {
		return false
	}
	kind := method.Type()
	if kind.NumIn() != 1 || kind.In(0) != reflect.TypeFor[uint32]() || kind.NumOut() != 1 ||
		!kind.Out(0).Implements(reflect.TypeFor[api.FunctionDefinition]()) {
		return false
	}
	m.define = func(function uint32) api.FunctionDefinition {
		return method.Call([]reflect.Value{reflect.ValueOf(function)})[0].Interface().(api.FunctionDefinition)
	}
	return true
}

// pointed is the struct that a field of another points to, or nothing.
func pointed(of reflect.Value, name string) reflect.Value {
	if of.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	field := of.FieldByName(name)
	if field.Kind() != reflect.Pointer || field.IsNil() {
		return reflect.Value{}
	}
	return field.Elem()
}

// frame is the call that returns to an address; not ok for one outside the module's own functions.
func (m *machine) frame(address uintptr) (f frame, ok bool) {
	code := *m.code
	if len(code) == 0 {
		return f, false
	}
	first := uintptr(unsafe.Pointer(&code[0]))
	if address < first || address >= first+uintptr(len(code)) {
		return f, false
	}
	functions := *m.functions
	index := sort.Search(len(functions), func(i int) bool { return functions[i] > int(address-first) }) - 1
	if index < 0 {
		return f, false
	}
	f.function = *m.imported + uint32(index)
	addresses := *m.addresses
	if at := sort.Search(len(addresses), func(i int) bool { return addresses[i] >= address }) - 1; at >= 0 {
		f.offset = (*m.offsets)[at]
	}
	return f, true
}

// frameRun is a call, and how many of it follow each other.
type frameRun struct {
	frame
	times int
}

// readStack is what was read of a stack: calls, innermost first, and how many more there are.
type readStack struct {
	machine *machine
	runs    []frameRun
	omitted int
}

// frames reads the calls of the stack, innermost first, while the guest is in the host.  Those beyond maxFrames are
// counted.  The stack is only read on amd64, where each frame points to its caller's.
func (s *callStack) frames() (read readStack) {
	if s.machine == nil || runtime.GOARCH != "amd64" || *s.saved == nil {
		return read
	}
	read.machine = s.machine
	lowest, end := uintptr(unsafe.Pointer(*s.bottom)), uintptr(unsafe.Pointer(&s.mapped[0]))+uintptr(len(s.mapped))
	usable := s.mapped[len(s.mapped)-int(end-lowest):]
	for at := *s.frame; at >= lowest && at <= end-16; {
		caller := uintptr(binary.LittleEndian.Uint64(usable[at-lowest:]))
		f, ok := s.machine.frame(uintptr(binary.LittleEndian.Uint64(usable[at-lowest+8:])))
		switch last := len(read.runs) - 1; {
		case !ok: // wazero's own code
		case last >= 0 && read.runs[last].frame == f && read.omitted == 0:
			read.runs[last].times++
		case len(read.runs) == maxFrames:
			read.omitted++
		default:
			read.runs = append(read.runs, frameRun{f, 1})
		}
		if caller <= at {
			break
		}
		at = caller
	}
	return read
}

// describe gives what was read of a stack as a TrapError has it.
func (m *Module) describe(read readStack) []string {
	stack, offsets := make([]string, len(read.runs)), make([]uint64, len(read.runs))
	for i, each := range read.runs {
		stack[i], offsets[i] = signed(each.function, read.machine.define(each.function)), each.offset
	}
	m.nameFrames(stack)
	sources := make([]string, len(read.runs))
	if m.lines != nil {
		sources = m.lines().Find(offsets)
	}
	for i, each := range read.runs {
		if sources[i] != "" {
			stack[i] += " at " + printable.Line(sources[i])
		}
		if each.times > 1 {
			stack[i] += times(each.times)
		}
	}
	if read.omitted > 0 {
		stack = append(stack, fmt.Sprintf("%d calls more", read.omitted))
	}
	return stack
}

func times(count int) string { return fmt.Sprintf(", %d times", count) }

// signed is a function by its number, as wazero shows it in a stack: "$12(i32,i32) i32".
func signed(function uint32, definition api.FunctionDefinition) string {
	words := func(types []api.ValueType) string {
		names := make([]string, len(types))
		for i, each := range types {
			names[i] = api.ValueTypeName(each)
		}
		return strings.Join(names, ",")
	}
	text := fmt.Sprintf("$%d(%s)", function, words(definition.ParamTypes()))
	switch results := definition.ResultTypes(); len(results) {
	case 0:
	case 1:
		text += " " + words(results)
	default:
		text += " (" + words(results) + ")"
	}
	return text
}

// calling is what the goroutine of a guest is in: the stacks of its calls, and what asks for them.
type calling struct {
	stacks []*callStack
	asked  chan chan<- []readStack
}

// enter notes a call, and leave ends it with what it has mapped.  No stack is read meanwhile (Still).
func (g *Guest) enter(s *callStack) {
	g.instance.Still(func(string) { g.calling.stacks = append(g.calling.stacks, s) })
}

func (g *Guest) leave(s *callStack) {
	g.instance.Still(func(string) {
		g.calling.stacks = slices.DeleteFunc(g.calling.stacks, func(each *callStack) bool { return each == s })
		s.free()
	})
}

// read reads the stacks of the guest, innermost first.  Its goroutine is in the host.
func (g *Guest) read() (stacks []readStack) {
	for _, each := range slices.Backward(g.calling.stacks) {
		stacks = append(stacks, each.frames())
	}
	return stacks
}

// describe names the functions of the guest that stacks are in.  The meter has added one without.
func (g *Guest) describe(stacks []readStack) (stack []string) {
	for _, each := range stacks {
		stack = append(stack, g.module.describe(each)...)
	}
	return named(stack)
}

func named(stack []string) []string { return slices.DeleteFunc(stack, numberedFrame.MatchString) }

// tick answers those that have asked where the guest is.  A metered guest does this now and then.
func (g *Guest) tick() {
	select {
	case answer := <-g.calling.asked:
		answer <- g.read()
	default:
	}
}

// tickPatience is how long a guest that computes may take to report where it is. It takes a tenth of a millisecond
// when it has a processor. Within a host function that does not wait, it does not report.
const tickPatience = 2 * time.Second

// ScriptComputes is where a script is that computes: what it prints when it is stopped says where in its text.
const ScriptComputes = "and computes; what it prints when it is stopped says where"

// Where is where a guest is that has not ended: "in wait_event", and the guest's functions as a TrapError has them.
func (g *Guest) Where() string {
	var waits string
	var stacks []readStack
	g.instance.Still(func(function string) {
		if waits = function; waits != "" {
			stacks = g.read()
		}
	})
	if waits != "" {
		return "in " + strings.Join(append([]string{waits}, g.describe(stacks)...), "\n  by ")
	}
	stacks = g.sample()
	if stack := g.describe(stacks); len(stack) > 0 {
		return "in " + strings.Join(stack, "\n  by ")
	}
	switch {
	case len(stacks) == 0 || stacks[0].machine == nil:
		return "in no host function that waits"
	case g.config.script:
		return ScriptComputes
	}
	return "in a function without a name (compile it with -g, and without wasm-opt)"
}

// sample asks a guest that computes where it is.
func (g *Guest) sample() []readStack {
	if !g.module.metered {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), tickPatience)
	defer cancel()
	answer := make(chan []readStack, 1)
	select {
	case g.calling.asked <- answer:
		return <-answer
	case <-g.done:
	case <-ctx.Done():
	}
	return nil
}
