package wasm

import "fmt"

// validator checks the body of a function by the algorithm in the appendix of the specification (WebAssembly Core
// Specification 2.0, section 7.3). It keeps the types that are on the stack, and the open blocks.
type validator struct {
	m      *Module
	r      *reader // of the body, which takes the errors
	at     int     // where the instruction begins
	in     *instruction
	locals []byte // their letters, parameters first
	stack  []byte
	blocks []block
	uses   Features
}

// block is one that is open.  The outermost is the function.
type block struct {
	opcode      opcode
	signature   Signature
	height      int // of the stack beneath it
	unreachable bool
}

// anyType is the letter of what an unreachable place of the stack has.
const anyType = '?'

// begin prepares for a function of this type, with the local variables in v.locals.
func (v *validator) begin(r *reader, signature Signature) {
	v.r, v.at = r, r.pos
	v.stack, v.blocks = v.stack[:0], v.blocks[:0]
	v.open(opBlock, Signature{Results: signature.Results})
}

// ended reports whether the function's last end was read.
func (v *validator) ended() bool { return len(v.blocks) == 0 }

func (v *validator) fail(format string, args ...any) {
	v.r.failAt(v.at, fmt.Errorf("%s "+format, append([]any{v.in.name}, args...)...))
}

func (v *validator) push(letters string) {
	if len(letters) == 1 { // most are, and a copy costs more
		v.stack = append(v.stack, letters[0])
		return
	}
	v.stack = append(v.stack, letters...)
}

func (v *validator) pushOne(letter byte) { v.stack = append(v.stack, letter) }

// pop takes a value of any type.
func (v *validator) pop() byte {
	inner := &v.blocks[len(v.blocks)-1]
	if len(v.stack) == inner.height {
		if !inner.unreachable {
			v.fail("takes a value, and the stack of its block is empty")
		}
		return anyType
	}
	letter := v.stack[len(v.stack)-1]
	v.stack = v.stack[:len(v.stack)-1]
	return letter
}

// popOne takes a value of a type, and gives the type that it has.
func (v *validator) popOne(want byte) byte {
	if inner := &v.blocks[len(v.blocks)-1]; len(v.stack) == inner.height && !inner.unreachable {
		v.fail("takes %s, and the stack of its block is empty", typeName(want))
		return anyType
	}
	have := v.pop()
	if have != want && have != anyType && want != anyType {
		v.fail("takes %s, and the stack has %s", typeName(want), typeName(have))
	}
	return have
}

func (v *validator) popAll(letters string) {
	inner := &v.blocks[len(v.blocks)-1]
	if at := len(v.stack) - len(letters); at >= inner.height && string(v.stack[at:]) == letters {
		v.stack = v.stack[:at] // what is common
		return
	}
	for i := len(letters) - 1; i >= 0; i-- {
		if inner.unreachable && len(v.stack) == inner.height {
			return // what is left to take is of any type
		}
		v.popOne(letters[i])
	}
}

// fits is popAll for values that stay on the stack.
func (v *validator) fits(letters string) {
	inner := &v.blocks[len(v.blocks)-1]
	for i, at := len(letters)-1, len(v.stack)-1; i >= 0; i, at = i-1, at-1 {
		switch {
		case at >= inner.height && (v.stack[at] == letters[i] || v.stack[at] == anyType):
		case at >= inner.height:
			v.fail("takes %s, and the stack has %s", typeName(letters[i]), typeName(v.stack[at]))
			return
		case !inner.unreachable:
			v.fail("takes %s, and the stack of its block is empty", typeName(letters[i]))
			return
		default:
			return
		}
	}
}

func (v *validator) open(op opcode, signature Signature) {
	if len(v.blocks) >= maxNesting {
		v.fail("is nested in more than %d blocks", maxNesting)
	}
	v.blocks = append(v.blocks, block{opcode: op, signature: signature, height: len(v.stack)})
	v.push(signature.Params)
}

func (v *validator) close() block {
	inner := v.blocks[len(v.blocks)-1]
	v.popAll(inner.signature.Results)
	if len(v.stack) != inner.height && v.r.err == nil {
		v.fail("leaves %d more values on the stack than its block gives", len(v.stack)-inner.height)
	}
	v.stack = v.stack[:inner.height]
	v.blocks = v.blocks[:len(v.blocks)-1]
	return inner
}

func (v *validator) unreachable() {
	inner := &v.blocks[len(v.blocks)-1]
	v.stack = v.stack[:inner.height]
	inner.unreachable = true
}

// label is what a branch to the block so many out takes along.
func (v *validator) label(depth uint32) string {
	if depth >= uint32(len(v.blocks)) {
		v.fail("branches out of %d blocks, and is in %d", depth, len(v.blocks))
		return ""
	}
	target := &v.blocks[len(v.blocks)-1-int(depth)]
	if target.opcode == opLoop {
		return target.signature.Params
	}
	return target.signature.Results
}

// check validates the instruction v.in.
func (v *validator) check() {
	in := v.in
	switch {
	case in.opcode >= 0xc0: // those below are of the first version
		v.uses |= featureOf(in)
		if in.opcode > 0xff {
			v.bulk(in)
		} else if in.opcode >= opRefNull {
			v.reference(in)
		}
	case in.opcode <= opReturnCallIndirect:
		v.control(in)
	case in.opcode <= opTableSet:
		v.variable(in)
	}
	if in.immediates >= memoryIndex && in.immediates <= memoryAndMemory && v.m.memories == 0 {
		v.fail("needs a memory, and there is none")
	}
	if in.params != "" {
		v.popAll(in.params)
	}
	if in.results != "" {
		v.push(in.results)
	}
	if len(v.stack) > maxOperands && v.r.err == nil {
		v.fail("has more than %d values on the stack", maxOperands)
	}
}

func (v *validator) control(in *instruction) {
	switch in.opcode {
	case opUnreachable:
		v.unreachable()
	case opIf:
		v.popOne('i')
		fallthrough
	case opBlock, opLoop:
		if len(in.block.Params) > 0 || len(in.block.Results) > 1 {
			v.uses |= multiValue
		}
		v.uses |= featuresOf(in.block)
		v.popAll(in.block.Params)
		v.open(in.opcode, in.block)
	case opElse:
		inner := v.close()
		if inner.opcode != opIf {
			v.fail("is not in an if")
		}
		v.open(opElse, inner.signature)
	case opEnd:
		inner := v.close()
		if inner.opcode == opIf && inner.signature.Params != inner.signature.Results {
			v.fail("ends an if without an else, and its results differ from its parameters")
		}
		if len(v.blocks) > 0 {
			v.push(inner.signature.Results)
		}
	case opBr:
		v.popAll(v.label(in.index))
		v.unreachable()
	case opBrIf:
		v.popOne('i')
		carried := v.label(in.index)
		v.popAll(carried)
		v.push(carried)
	case opBrTable:
		v.branchTable(in)
	case opReturn:
		v.popAll(v.blocks[0].signature.Results)
		v.unreachable()
	case opCall, opReturnCall:
		if in.index >= uint32(len(v.m.functions)) {
			v.fail("calls function %d, and there are %d", in.index, len(v.m.functions))
			return
		}
		v.call(v.m.signature(in.index), in.opcode == opReturnCall)
	case opCallIndirect, opReturnCallIndirect:
		if in.second != 0 {
			v.uses |= referenceTypes
		}
		switch {
		case in.index >= uint32(len(v.m.types)):
			v.fail("has type %d, and there are %d", in.index, len(v.m.types))
		case in.second >= uint32(len(v.m.tables)):
			v.fail("has table %d, and there are %d", in.second, len(v.m.tables))
		case v.m.tables[in.second].reference != letterFunction:
			v.fail("has a table of other things than functions")
		default:
			v.popOne('i')
			v.call(v.m.types[in.index], in.opcode == opReturnCallIndirect)
		}
	}
}

func (v *validator) call(signature Signature, tail bool) {
	v.popAll(signature.Params)
	if !tail {
		v.push(signature.Results)
		return
	}
	v.uses |= tailCall
	if results := v.blocks[0].signature.Results; signature.Results != results {
		v.fail("gives %s, and its function %s", Signature{Results: signature.Results}, Signature{Results: results})
	}
	v.unreachable()
}

// branchTable checks that all targets take along as many values, of types that the stack has.
func (v *validator) branchTable(in *instruction) {
	v.popOne('i')
	last := v.label(in.index)
	checked := last
	for _, each := range in.labels {
		carried := v.label(each)
		if carried == checked {
			continue // as is common
		}
		if len(carried) != len(last) {
			v.fail("has targets that take along %d values and %d", len(carried), len(last))
			return
		}
		// Unreachable code may have different types for each target.
		if v.fits(carried); v.r.err != nil {
			return
		}
		checked = carried
	}
	v.popAll(last)
	v.unreachable()
}

func (v *validator) variable(in *instruction) {
	switch in.opcode {
	case opDrop:
		v.pop()
	case opSelect, opSelectType:
		v.selects(in)
	case opLocalGet, opLocalSet, opLocalTee:
		if in.index >= uint32(len(v.locals)) {
			v.fail("has local variable %d, and there are %d", in.index, len(v.locals))
			return
		}
		letter := v.locals[in.index]
		if in.opcode != opLocalGet {
			v.popOne(letter)
		}
		if in.opcode != opLocalSet {
			v.pushOne(letter)
		}
	case opGlobalGet, opGlobalSet:
		if in.index >= uint32(len(v.m.globals)) {
			v.fail("has global %d, and there are %d", in.index, len(v.m.globals))
			return
		}
		one := v.m.globals[in.index]
		if in.opcode == opGlobalGet {
			v.pushOne(one.letter)
		} else if v.popOne(one.letter); !one.mutable {
			v.fail("has global %d, which may not change", in.index)
		}
	case opTableGet, opTableSet:
		v.uses |= referenceTypes
		one, ok := v.table(in.index)
		switch {
		case !ok:
		case in.opcode == opTableGet:
			v.popOne('i')
			v.pushOne(one.reference)
		default:
			v.popOne(one.reference)
			v.popOne('i')
		}
	}
}

func (v *validator) selects(in *instruction) {
	v.popOne('i')
	if in.opcode == opSelectType {
		v.uses |= referenceTypes
		v.popOne(in.lane)
		v.popOne(in.lane)
		v.pushOne(in.lane)
		return
	}
	first, second := v.pop(), v.pop()
	switch {
	case isReference(first) || isReference(second):
		v.fail("without a type takes references")
	case first != second && first != anyType && second != anyType:
		v.fail("takes %s and %s", typeName(second), typeName(first))
	case first == anyType:
		v.pushOne(second)
	default:
		v.pushOne(first)
	}
}

func (v *validator) table(index uint32) (table, bool) {
	if index >= uint32(len(v.m.tables)) {
		v.fail("has table %d, and there are %d", index, len(v.m.tables))
		return table{}, false
	}
	return v.m.tables[index], true
}

func (v *validator) reference(in *instruction) {
	switch in.opcode {
	case opRefNull:
		v.pushOne(in.lane)
	case opRefIsNull:
		if have := v.pop(); !isReference(have) && have != anyType {
			v.fail("takes a reference, and the stack has %s", typeName(have))
		}
		v.pushOne('i')
	case opRefFunc:
		if in.index >= uint32(len(v.m.functions)) || !v.m.declared[in.index] {
			v.fail("has function %d, which no segment, export or global names", in.index)
		}
	}
}

// bulk checks the indices of instructions on segments and tables, and the types of those that depend on a table's.
func (v *validator) bulk(in *instruction) {
	switch in.immediates {
	case data, dataAndMemory:
		if count := uint32(max(v.m.dataCount, 0)); in.index >= count {
			v.fail("has data segment %d, and the data count section says %d", in.index, count)
		}
	case element:
		if in.index >= uint32(len(v.m.elements)) {
			v.fail("has element segment %d, and there are %d", in.index, len(v.m.elements))
		}
	case elementAndTable:
		to, ok := v.table(in.second)
		switch {
		case !ok:
		case in.index >= uint32(len(v.m.elements)):
			v.fail("has element segment %d, and there are %d", in.index, len(v.m.elements))
		case v.m.elements[in.index] != to.reference:
			v.fail("puts %s into a table of %s", typeName(v.m.elements[in.index]), typeName(to.reference))
		}
	case tableAndTable:
		to, ok := v.table(in.index)
		from, found := v.table(in.second)
		if ok && found && to.reference != from.reference {
			v.fail("copies %s into a table of %s", typeName(from.reference), typeName(to.reference))
		}
	case tableIndex:
		one, ok := v.table(in.index)
		switch {
		case !ok:
		case in.opcode == opTableGrow:
			v.popOne('i')
			v.popOne(one.reference)
			v.pushOne('i')
		case in.opcode == opTableFill:
			v.popOne('i')
			v.popOne(one.reference)
			v.popOne('i')
		}
	}
}
