package wasm

import (
	"fmt"
	"strings"
)

// Signature is the type of a function, a letter for each value. The letters are i (i32), I (i64), f (f32), F (f64), v
// (v128), r (funcref) and x (externref).
type Signature struct{ Params, Results string }

const (
	valueLetters = "iIfFvrx"
	valueCodes   = "\x7f\x7e\x7d\x7c\x7b\x70\x6f" // in modules (WebAssembly Core Specification 2.0, section 5.3)

	letterFunction = 'r'
	letterExternal = 'x'

	typeI32       = 0x7f
	typeFuncref   = 0x70
	typeExternref = 0x6f
	typeFunction  = 0x60
)

var valueNames = [...]string{"i32", "i64", "f32", "f64", "v128", "funcref", "externref"}

// String is the signature as wasm tools write it, "(i32 i64) -> (i32)".
func (s Signature) String() string {
	return fmt.Sprintf("(%s) -> (%s)", spell(s.Params), spell(s.Results))
}

func spell(letters string) string {
	names := make([]string, len(letters))
	for i := range letters {
		names[i] = typeName(letters[i])
	}
	return strings.Join(names, " ")
}

func typeName(letter byte) string { return valueNames[strings.IndexByte(valueLetters, letter)] }
func typeCode(letter byte) byte   { return valueCodes[strings.IndexByte(valueLetters, letter)] }

// letterText is a letter as a string, without an allocation.
func letterText(letter byte) string {
	at := strings.IndexByte(valueLetters, letter)
	if at < 0 {
		return ""
	}
	return valueLetters[at : at+1]
}

func isReference(letter byte) bool { return letter == letterFunction || letter == letterExternal }

// Letter is the letter of a value type in a Signature, 0 for none.
func Letter(valueType byte) byte {
	if at := strings.IndexByte(valueCodes, valueType); at >= 0 {
		return valueLetters[at]
	}
	return 0
}

// Types are the value types of the letters of a Signature; false where one is not a number.
func Types(letters string) (types []byte, ok bool) {
	for _, letter := range letters {
		at := strings.IndexRune("iIfF", letter)
		if at < 0 {
			return nil, false
		}
		types = append(types, valueCodes[at])
	}
	return types, true
}

// valueType reads one, and gives its letter.
func (r *reader) valueType() byte {
	code := r.byte()
	letter := Letter(code)
	if letter == 0 && r.err == nil {
		if feature := missingType(code); feature != nil {
			r.failAt(r.pos-1, unsupported(feature))
		}
		r.failAt(r.pos-1, fmt.Errorf("value type %#x is not known", code))
	}
	return letter
}

func (r *reader) valueTypes() string {
	count := r.index()
	if count > maxValues {
		r.fail(fmt.Errorf("a function has %d parameters or results; the limit is %d", count, maxValues))
	}
	var letters []byte
	for i := uint32(0); i < count && r.err == nil; i++ {
		letters = append(letters, r.valueType())
	}
	return string(letters)
}

func appendValueTypes(out []byte, letters string) []byte {
	out = appendUnsigned(out, uint64(len(letters)))
	for i := range letters {
		out = append(out, typeCode(letters[i]))
	}
	return out
}

func (r *reader) signature() Signature {
	at := r.pos
	if form := r.byte(); form != typeFunction && r.err == nil {
		if feature := missingType(form); feature != nil {
			r.failAt(at, unsupported(feature))
		}
		r.failAt(at, fmt.Errorf("type form %#x is not known", form))
	}
	return Signature{Params: r.valueTypes(), Results: r.valueTypes()}
}

func appendSignature(out []byte, s Signature) []byte {
	return appendValueTypes(appendValueTypes(append(out, typeFunction), s.Params), s.Results)
}

// limits are those of a memory in pages or of a table in elements.
type limits struct {
	minimum, maximum uint32
	bounded, shared  bool
}

const (
	limitsBounded = 1
	limitsShared  = 2
	limits64      = 4
)

func (r *reader) limits() (l limits) {
	at := r.pos
	switch flags := r.byte(); {
	case flags&^(limitsBounded|limitsShared|limits64) == 0 && flags&limits64 != 0:
		r.failAt(at, unsupported(memory64))
		return l
	case flags > limitsBounded|limitsShared:
		r.failAt(at, fmt.Errorf("limits of kind %#x are not known", flags))
		return l
	default:
		l.bounded, l.shared = flags&limitsBounded != 0, flags&limitsShared != 0
	}
	if l.minimum = r.index(); l.bounded {
		if l.maximum = r.index(); r.err == nil && l.maximum < l.minimum {
			r.failAt(at, fmt.Errorf("limits have a maximum of %d, below their minimum of %d", l.maximum, l.minimum))
		}
	}
	return l
}

func (l limits) append(out []byte) []byte {
	flags := byte(0)
	if l.bounded {
		flags |= limitsBounded
	}
	if l.shared {
		flags |= limitsShared
	}
	if out = appendUnsigned(append(out, flags), uint64(l.minimum)); l.bounded {
		out = appendUnsigned(out, uint64(l.maximum))
	}
	return out
}

// memory reads the type of a memory.
func (r *reader) memory() limits {
	const pages = 1 << 16 // 4 GiB
	at := r.pos
	l := r.limits()
	switch {
	case r.err != nil:
	case l.minimum > pages || l.maximum > pages:
		r.failAt(at, fmt.Errorf("a memory has more than %d pages", pages))
	case l.shared && !l.bounded:
		r.failAt(at, fmt.Errorf("a shared memory has no maximum"))
	}
	return l
}

// table is the type of a table.
type table struct {
	limits
	reference byte // the letter of its elements
}

func (r *reader) table() table {
	at := r.pos
	if r.more() && r.data[r.pos] == 0x40 { // with a value for its elements
		r.fail(unsupported(functionReferences))
	}
	one := table{reference: r.referenceType()}
	one.limits = r.limits()
	switch {
	case r.err != nil:
	case one.shared:
		r.failAt(at, fmt.Errorf("a table is shared"))
	case one.minimum > maxTable:
		r.failAt(at, fmt.Errorf("a table begins with %d elements; the limit is %d", one.minimum, maxTable))
	}
	return one
}

func (t table) append(out []byte) []byte { return t.limits.append(append(out, typeCode(t.reference))) }

func (r *reader) referenceType() byte {
	at := r.pos
	letter := r.valueType()
	if r.err == nil && !isReference(letter) {
		r.failAt(at, fmt.Errorf("%s is not a type of references", typeName(letter)))
	}
	return letter
}

// globalType is the type of a global variable.
type globalType struct {
	letter            byte
	mutable, imported bool
}

func (r *reader) globalType() globalType {
	one := globalType{letter: r.valueType()}
	at := r.pos
	flag := r.byte()
	if flag > 1 && r.err == nil {
		r.failAt(at, fmt.Errorf("whether a global may change is %#x, and not 0 or 1", flag))
	}
	one.mutable = flag == 1
	return one
}

func (g globalType) append(out []byte) []byte {
	mutable := byte(0)
	if g.mutable {
		mutable = 1
	}
	return append(out, typeCode(g.letter), mutable)
}
