package guest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"rdmarun/host/guest/wasm"
	"rdmarun/host/printable"
	"rdmarun/hostfuncs"
)

// TrapError is a trap: what WebAssembly forbids, and where the guest did it.
type TrapError struct {
	Kind   string // as WebAssembly names it: "out of bounds memory access"
	Detail string // may be empty: what the guest's library said of it, or the size of the stack
	// Stack are the guest's functions, innermost first: "copy(i32,i32) i32 at list.c:12:5".  The names are the guest's
	// own.
	Stack []string
}

func (e *TrapError) Error() string { return "the guest trapped: " + e.Reason() + e.Trace() }

// Reason is the kind and the detail.
func (e *TrapError) Reason() string {
	if e.Detail == "" {
		return e.Kind
	}
	return e.Kind + ": " + e.Detail
}

// Trace is the stack, each function in a line that begins with a line end.
func (e *TrapError) Trace() string { return frames(e.Stack) }

func frames(stack []string) string {
	if len(stack) == 0 {
		return ""
	}
	return "\n  in " + strings.Join(stack, "\n  by ")
}

// PlacedError is why the host ended a guest, with where the guest was.
type PlacedError struct {
	Err error
	// Stack is a host function that waited, or the guest's functions as in a TrapError; empty where neither is known.
	Stack []string
}

func (e *PlacedError) Error() string { return e.Err.Error() + e.Trace() }

// Unwrap is the reason.
func (e *PlacedError) Unwrap() error { return e.Err }

// Trace is the stack, as that of a TrapError.
func (e *PlacedError) Trace() string { return frames(e.Stack) }

// maxFrame is where a frame is cut, in bytes; wazero gives some thirty of them.
const maxFrame = 512

// stackOverflow is the kind of a full stack, for which wazero gives no frames.
const stackOverflow = "stack overflow"

// trapError is how this guest trapped.
func (g *Guest) trapError(err error) *TrapError {
	e := g.module.trapError(err)
	switch {
	case e.Kind == stackOverflow && compiles():
		if len(e.Stack) == 0 {
			e.Stack = g.module.describe(g.last)
		}
		e.Detail = fmt.Sprintf("its calls nest deeper than a stack of %s", hostfuncs.Bytes(int64(g.stackSize())))
	case e.Kind == "unreachable":
		e.Detail = g.outputs.stderr.onlyLine() // a library's last words
		// Without memory a compiler's library ends the guest so, AssemblyScript's without a message.
		if refused := g.memory.refused; refused != nil {
			e.Detail = strings.TrimPrefix(fmt.Sprintf("%s; its memory could not grow: %v", e.Detail, refused), "; ")
		}
	}
	return e
}

// trapError reads wazero's account of a trap, which may have the place in the code beneath a function.
func (m *Module) trapError(err error) *TrapError {
	const stackTitle = "wasm stack trace:"
	reason, stack, _ := strings.Cut(err.Error(), "\n"+stackTitle)
	e := &TrapError{Kind: strings.TrimPrefix(reason, "wasm error: ")}
	var offsets []uint64
	var frames []int // of the offsets
	for _, line := range strings.Split(stack, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if offset, ok := wasm.FrameOffset(line); ok && m.lines != nil && len(e.Stack) > 0 {
			offsets, frames = append(offsets, offset), append(frames, len(e.Stack)-1)
			continue
		}
		// A guest's functions follow the name of its module, which is empty.
		e.Stack = append(e.Stack, strings.TrimPrefix(line, "."))
	}
	m.nameFrames(e.Stack)
	if m.lines != nil {
		for i, source := range m.lines().Find(offsets) {
			if source != "" {
				e.Stack[frames[i]] += " at " + printable.Line(source)
			}
		}
	}
	e.Stack = collapsed(e.Stack)
	return e
}

// collapsed is a stack where equal calls that follow each other are one, with their number.
func collapsed(stack []string) (short []string) {
	count := 0
	for i, each := range stack {
		count++
		if i+1 < len(stack) && stack[i+1] == each {
			continue
		}
		if count > 1 {
			each += times(count)
		}
		short, count = append(short, each), 0
	}
	return short
}

// nameFrames replaces the numbers of functions, which the runtime uses, by their names: "$12(i32) i32".
func (m *Module) nameFrames(stack []string) {
	numbers, frames := make([]uint32, 0, len(stack)), make([]int, 0, len(stack))
	for i, frame := range stack {
		if number := numberedFrame.FindStringSubmatch(frame); number != nil {
			index, err := strconv.ParseUint(number[1], 10, 32)
			if err == nil {
				numbers, frames = append(numbers, uint32(index)), append(frames, i)
			}
		}
	}
	for i, name := range m.names.Find(numbers) {
		if name != "" {
			frame := &stack[frames[i]]
			*frame = shown(rustNames(name)) + (*frame)[strings.IndexByte(*frame, '('):]
		}
	}
}

var numberedFrame = regexp.MustCompile(`^\$([0-9]{1,10})\(`)

func clipped(text string) string {
	if len(text) > maxFrame {
		return text[:maxFrame] + "..."
	}
	return text
}

// rustNames are the names that Rust's compiler has mangled, as their source has them. A name has the parts of a path,
// each behind its length. The last part is a hash.
func rustNames(text string) string {
	return rustName.ReplaceAllStringFunc(text, func(mangled string) string {
		var path []string
		rest := strings.TrimPrefix(mangled, "_ZN")
		for !strings.HasPrefix(rest, "17h") {
			digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
			length, err := strconv.Atoi(rest[:digits])
			if err != nil || length > len(rest)-digits {
				return mangled
			}
			part := rest[digits:][:length]
			if strings.HasPrefix(part, "_$") {
				part = part[1:] // so that it begins as an identifier
			}
			path = append(path, rustEscape.ReplaceAllStringFunc(strings.ReplaceAll(part, "..", "::"), rustCharacter))
			rest = rest[digits+length:]
		}
		return strings.Join(path, "::")
	})
}

var (
	rustName   = regexp.MustCompile(`_ZN[0-9][A-Za-z0-9_.$]*17h[0-9a-f]{16}E(\.llvm\.[0-9]+)?`)
	rustEscape = regexp.MustCompile(`\$[A-Za-z0-9]{1,6}\$`)
)

// rustCharacter is what an escape stands for.
func rustCharacter(escape string) string {
	inside := strings.Trim(escape, "$")
	switch inside {
	case "LT":
		return "<"
	case "GT":
		return ">"
	case "RF":
		return "&"
	case "BP":
		return "*"
	case "C":
		return ","
	case "LP":
		return "("
	case "RP":
		return ")"
	}
	if code, err := strconv.ParseUint(strings.TrimPrefix(inside, "u"), 16, 32); err == nil &&
		utf8.ValidRune(rune(code)) {
		return string(rune(code))
	}
	return escape
}
