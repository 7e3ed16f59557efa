package wasm

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
)

// declaration is a run of local variables of one type.
type declaration struct {
	count  uint32
	letter byte
}

// run is a run of bodies, which one goroutine decodes.
type run struct {
	first  uint32 // the index of its first function
	bodies []body
	writer *bodyWriter // nil if nothing is written

	uses   Features
	locals int
	err    error
}

// minRun is how many bytes of bodies are worth a goroutine.
const minRun = 128 << 10

// runs divides the bodies among the processors, into runs of about the same size.
func (m *Module) runs() []run {
	if len(m.bodies) == 0 {
		return nil
	}
	total := m.bodies[len(m.bodies)-1].end - m.bodies[0].begin
	size := max(total/runtime.GOMAXPROCS(0)+1, minRun)
	var runs []run
	for first, at := 0, 0; at < len(m.bodies); at++ {
		if last := at == len(m.bodies)-1; last || m.bodies[at].end-m.bodies[first].begin >= size {
			runs = append(runs, run{first: m.importedFunctions + uint32(first), bodies: m.bodies[first : at+1]})
			first = at + 1
		}
	}
	return runs
}

// decodeBodies decodes and validates the bodies of all functions in one pass, and looks between two whether ctx has
// ended.  Each run gets a writer that writes them, unless writer is nil.
func (m *Module) decodeBodies(ctx context.Context, writer func() *bodyWriter) ([]run, error) {
	runs := m.runs()
	var group sync.WaitGroup
	for i := range runs {
		each := &runs[i]
		if writer != nil {
			each.writer = writer()
			size := each.bodies[len(each.bodies)-1].end - each.bodies[0].begin
			each.writer.section = make([]byte, 0, size+size/4)
		}
		group.Go(func() { each.err = each.decode(ctx, m) })
	}
	group.Wait()
	locals := 0
	for _, each := range runs {
		if each.err != nil {
			return nil, each.err // of the first function that has one
		}
		m.Facts.Features |= each.uses
		locals += each.locals
	}
	if locals > allLocals {
		return nil, wrapFormat(fmt.Errorf(
			"its functions have %d local variables; the limit is %d", locals, allLocals,
		))
	}
	return runs, nil
}

func (one *run) decode(ctx context.Context, m *Module) error {
	var in instruction
	var declared []declaration
	v, r, w := validator{m: m, in: &in}, new(reader), one.writer
	for i, each := range one.bodies {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		function := one.first + uint32(i)
		signature := m.signature(function)
		*r = reader{data: m.file[:each.end], pos: each.begin}
		v.locals = append(v.locals[:0], signature.Params...)
		declared = v.declarations(r, declared[:0])
		if one.locals += len(v.locals); one.locals > allLocals {
			r.fail(fmt.Errorf("the functions have more than %d local variables", allLocals))
		}
		v.begin(r, signature)
		if w != nil {
			w.begin(declared, each.begin, r.pos)
		}
		for r.err == nil && !v.ended() {
			v.at = r.pos
			if r.instruction(&in, m.types); r.err != nil {
				break
			}
			if v.check(); w != nil {
				w.write(&in, v.at, r.pos)
			}
		}
		if r.more() {
			r.fail(errors.New("it continues after its end"))
		}
		if r.err != nil {
			return wrapFormat(fmt.Errorf("function %d, %w", function, r.failure()))
		}
		if w != nil {
			w.end()
		}
	}
	one.uses = v.uses
	return nil
}

// declarations reads a function's local variables, which become v.locals behind the parameters.
func (v *validator) declarations(r *reader, declared []declaration) []declaration {
	at, locals := r.pos, uint64(len(v.locals))
	r.vector(func() {
		one := declaration{r.index(), r.valueType()}
		if locals += uint64(one.count); locals > maxLocals {
			r.failAt(
				at,
				fmt.Errorf(
					"a function has %d local variables; the limit is %d, and %d for all functions", locals, maxLocals,
					allLocals,
				),
			)
		}
		if r.err != nil || one.count == 0 {
			return
		}
		v.uses |= featuresOf(Signature{Params: letterText(one.letter)})
		if last := len(declared) - 1; last >= 0 && declared[last].letter == one.letter {
			declared[last].count += one.count
		} else {
			declared = append(declared, one)
		}
		v.locals = slices.Grow(v.locals, int(one.count))
		for range one.count {
			v.locals = append(v.locals, one.letter)
		}
	})
	return declared
}

// bodyWriter writes the bodies of a module that is rewritten, each with its checks.
type bodyWriter struct {
	*rewriting
	lines   *Lines // nil when the module has neither a line table nor a source map
	section []byte

	body       []byte // the one that is written
	entry      int    // where its instructions begin in it
	was        int    // and began before
	marks      int    // of those before it
	calls      bool
	beginsLoop bool
}

func (w *bodyWriter) begin(declared []declaration, begin, entry int) {
	w.body = appendUnsigned(w.body[:0], uint64(len(declared)))
	for _, each := range declared {
		w.body = append(appendUnsigned(w.body, uint64(each.count)), typeCode(each.letter))
	}
	w.entry, w.was, w.calls, w.beginsLoop = len(w.body), entry-w.code, false, false
	if w.lines != nil {
		w.lines.bodies = append(w.lines.bodies, uint32(begin-w.code))
	}
	w.marks = w.lines.count()
	w.lines.note(w.entry, w.was)
}

// write writes an instruction that was from one place to another.
func (w *bodyWriter) write(in *instruction, from, to int) {
	from, to = from-w.code, to-w.code
	begin := len(w.body)
	switch in.opcode {
	case opTableGrow:
		w.insert(code(nil).with(opCall, w.function+in.index), from, to)
		return
	case opMemoryInit, opMemoryCopy, opMemoryFill, opTableInit, opTableCopy, opTableFill:
		if w.metered {
			w.insert(code(nil).with(opCall, w.pay()), from, from)
			begin = len(w.body)
		}
	case opLoop:
		w.beginsLoop = w.beginsLoop || begin == w.entry
	case opCall, opCallIndirect, opReturnCall, opReturnCallIndirect:
		w.calls = true
	}
	w.body = in.append(w.body)
	if in.opcode == opLoop {
		w.insert(w.check, to, to)
	} else if len(w.body)-begin != to-from { // it was longer than it need be
		w.lines.note(len(w.body), to)
	}
}

// insert writes instructions that were not there, or stand for the one between two places.
func (w *bodyWriter) insert(instructions []byte, from, to int) {
	w.lines.note(len(w.body), from)
	w.body = append(w.body, instructions...)
	w.lines.note(len(w.body), to)
}

func (w *bodyWriter) end() {
	// A loop that comes first (Go's compiler begins most functions so) checks for the entry too.
	if w.metered && w.calls && !w.beginsLoop {
		w.body = slices.Insert(w.body, w.entry, w.check...)
		w.lines.shift(w.marks, w.entry, w.was, len(w.check))
	}
	w.section = appendUnsigned(w.section, uint64(len(w.body)))
	w.lines.addOffset(w.marks, len(w.section))
	w.section = append(w.section, w.body...)
}
