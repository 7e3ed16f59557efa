package wasm

import (
	"errors"
	"fmt"
	"strings"
)

// Kind is what an import or export is.
type Kind byte

// The kinds of import and export.
const (
	KindFunction Kind = iota
	KindTable
	KindMemory
	KindGlobal
	KindTag
)

// Import is one import of a module.
type Import struct {
	Module, Name string
	Kind         Kind
	Signature    Signature // functions
	typeIndex    uint32
}

// Export is one export of a module.
type Export struct {
	Name      string
	Kind      Kind
	Signature Signature // functions
	index     uint32
}

// Signature is the type of a function, a letter for each value: i (i32), I (i64), f, F, or ? for others.
type Signature struct{ Params, Results string }

// String is the signature as wasm tools write it, "(i32 i64) -> (i32)".
func (s Signature) String() string {
	return fmt.Sprintf("(%s) -> (%s)", spell(s.Params), spell(s.Results))
}

func spell(letters string) string {
	names := map[rune]string{'i': "i32", 'I': "i64", 'f': "f32", 'F': "f64"}
	text := ""
	for i, letter := range letters {
		if i > 0 {
			text += " "
		}
		if name, ok := names[letter]; ok {
			text += name
		} else {
			text += "ref"
		}
	}
	return text
}

// Facts are what a host wants to know about a module before it compiles it.
type Facts struct {
	Imports []Import
	Exports []Export
	// HasMemory says that the module defines a memory; MinPages and MaxPages are its limits in
	// pages of 64 KiB, MaxPages 65536 when it declares none.
	HasMemory          bool
	SharedMemory       bool // for several threads
	MinPages, MaxPages uint64
	// InstanceSize is what each instance takes beside its memory: tables, globals, functions, segments.
	InstanceSize uint64
	// Features are those that its instructions and types are of, Size is the module's in bytes; guest.Inspect fills them in.
	Features Features
	Size     int
	// Custom are its custom sections, Producers the tools that it says it was made by.
	Custom    []Custom
	Producers []string
}

// Custom is a custom section.
type Custom struct {
	Name string
	Size int
}

// Inspect reads a module's imports, exports and memory, and finds limits that it exceeds.
func Inspect(module []byte) (Facts, error) {
	sections, err := split(module)
	if err != nil {
		return Facts{}, err
	}
	var facts Facts
	var types []Signature
	var functions []uint32 // the types of those that the module defines
	locals := uint64(0)
	for _, one := range sections {
		if err := facts.limits(one, &locals); err != nil {
			return Facts{}, err
		}
		switch one.id {
		case sectionCustom:
			facts.custom(one)
		case sectionType:
			types, err = parseTypes(one.content)
		case sectionImport:
			facts.Imports, err = parseImports(one.content)
		case sectionExport:
			facts.Exports, err = parseExports(one.content)
		case sectionFunction:
			functions, err = parse("function", one.content, (*reader).index)
		case sectionMemory:
			err = facts.parseMemory(one.content)
		}
		if err != nil {
			return Facts{}, err
		}
	}
	for i := range facts.Imports {
		if each := &facts.Imports[i]; each.Kind == KindFunction {
			if int(each.typeIndex) >= len(types) {
				return Facts{}, fmt.Errorf("%w: import %s.%s has no type", ErrFormat, each.Module, each.Name)
			}
			each.Signature = types[each.typeIndex]
		}
	}
	facts.signExports(types, functions)
	return facts, nil
}

// signExports gives exported functions their signatures; those of a broken module have none.
func (f *Facts) signExports(types []Signature, functions []uint32) {
	var all []uint32 // functions are numbered imports first
	for _, each := range f.Imports {
		if each.Kind == KindFunction {
			all = append(all, each.typeIndex)
		}
	}
	all = append(all, functions...)
	for i := range f.Exports {
		each := &f.Exports[i]
		if each.Kind == KindFunction && int(each.index) < len(all) && int(all[each.index]) < len(types) {
			each.Signature = types[all[each.index]]
		}
	}
}

// custom notes a custom section.  What is broken in it is nobody's concern.
func (f *Facts) custom(one section) {
	const most = 1024
	if len(f.Custom) < most {
		f.Custom = append(f.Custom, Custom{one.name, len(one.content)})
	}
	if one.name != "producers" || f.Producers != nil {
		return
	}
	r := &reader{data: one.content}
	r.name()
	r.vector(func() {
		r.name() // language, processed-by, sdk
		r.vector(func() {
			name, version := r.name(), r.name()
			if r.err == nil && len(f.Producers) < most {
				f.Producers = append(f.Producers, strings.TrimSpace(name+" "+version))
			}
		})
	})
}

// Section ids (WebAssembly Core Specification 2.0, section 5.5.2).
const (
	sectionCustom   = 0
	sectionType     = 1
	sectionImport   = 2
	sectionFunction = 3
	sectionTable    = 4
	sectionMemory   = 5
	sectionGlobal   = 6
	sectionExport   = 7
	sectionStart    = 8
	sectionElement  = 9
	sectionCode     = 10
	sectionData     = 11
	sectionTag      = 13
)

// ErrFormat is the error for bytes that are no WebAssembly module at all.
var ErrFormat = errors.New("not a WebAssembly module")

var header = []byte{0, 'a', 's', 'm', 1, 0, 0, 0}

type section struct {
	id      byte
	name    string // custom sections
	content []byte
}

// split cuts a module into its sections.  The contents share the module's bytes.
func split(wasm []byte) ([]section, error) {
	if len(wasm) < len(header) || string(wasm[:4]) != string(header[:4]) {
		return nil, ErrFormat
	}
	if string(wasm[4:8]) != string(header[4:]) {
		return nil, fmt.Errorf("%w: version %#x, where a core module has 1 (is it a component?)",
			ErrFormat, wasm[4:8])
	}
	var sections []section
	r := &reader{data: wasm, pos: len(header)}
	for r.more() {
		one := section{id: r.byte()}
		one.content = r.bytes(r.unsigned())
		if one.id == sectionCustom {
			custom := &reader{data: one.content}
			one.name = custom.name()
		}
		sections = append(sections, one)
	}
	if r.err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, r.failure())
	}
	return sections, nil
}

func join(sections []section) []byte {
	size := len(header)
	for _, one := range sections {
		size += len(one.content) + 6
	}
	wasm := append(make([]byte, 0, size), header...)
	for _, one := range sections {
		wasm = append(wasm, one.id)
		wasm = appendUnsigned(wasm, uint64(len(one.content)))
		wasm = append(wasm, one.content...)
	}
	return wasm
}

// find returns the section of that id, or nil.
func find(sections []section, id byte) *section {
	for i := range sections {
		if sections[i].id == id {
			return &sections[i]
		}
	}
	return nil
}

// sectionRank is the place of a section in a module; their ids are not in that order.
func sectionRank(id byte) int {
	const order = "\x01\x02\x03\x04\x05\x0d\x06\x07\x08\x09\x0c\x0a\x0b"
	return strings.IndexByte(order, id)
}

// parse reads a whole section as a vector of items.
func parse[T any](name string, content []byte, item func(*reader) T) ([]T, error) {
	r := &reader{data: content}
	var items []T
	r.vector(func() { items = append(items, item(r)) })
	if r.err != nil {
		return nil, wrapFormat(fmt.Errorf("%s section, %w", name, r.failure()))
	}
	return items, nil
}

func parseTypes(content []byte) ([]Signature, error) {
	return parse("type", content, func(r *reader) Signature {
		if form := r.byte(); form != typeFunction && r.err == nil {
			if feature := missingType(form); feature != nil {
				r.fail(unsupported(feature))
			}
			r.fail(fmt.Errorf("type form %#x is not known", form))
		}
		return Signature{Params: r.valueTypes(), Results: r.valueTypes()}
	})
}

func (r *reader) valueTypes() string {
	var letters []byte
	count := r.vector(func() {
		code := r.byte()
		if feature := missingType(code); feature != nil && r.err == nil {
			r.fail(unsupported(feature))
		}
		if code == typeV128 {
			r.uses |= simd
		}
		letters = append(letters, Letter(code))
	})
	if count > maxValues {
		r.fail(fmt.Errorf("a function has %d parameters or results, and %d are the most", count, maxValues))
	}
	return string(letters)
}

// Letter is the letter of a value type in a Signature.
func Letter(valueType byte) byte {
	switch valueType {
	case typeI32:
		return 'i'
	case 0x7e:
		return 'I'
	case 0x7d:
		return 'f'
	case 0x7c:
		return 'F'
	}
	return '?'
}

// Types are the value types of the letters of a Signature; false where one has none.
func Types(letters string) (types []byte, ok bool) {
	for _, letter := range letters {
		at := strings.IndexRune("iIfF", letter)
		if at < 0 {
			return nil, false
		}
		types = append(types, typeI32-byte(at))
	}
	return types, true
}

func parseImports(content []byte) ([]Import, error) {
	return parse("import", content, func(r *reader) Import {
		one := Import{Module: r.name(), Name: r.name(), Kind: Kind(r.byte())}
		switch one.Kind {
		case KindFunction:
			one.typeIndex = r.index()
		case KindTable:
			r.leb() // element type
			r.limits()
		case KindMemory:
			r.limits()
		case KindGlobal:
			r.leb() // value type
			r.byte()
		case KindTag:
			r.byte()
			r.index()
		default:
			r.fail(fmt.Errorf("import %s.%s is of unknown kind %#x", one.Module, one.Name, byte(one.Kind)))
		}
		return one
	})
}

func parseExports(content []byte) ([]Export, error) {
	return parse("export", content, func(r *reader) Export {
		return Export{Name: r.name(), Kind: Kind(r.byte()), index: r.index()}
	})
}

func (f *Facts) parseMemory(content []byte) error {
	_, err := parse("memory", content, func(r *reader) struct{} {
		if f.HasMemory {
			r.fail(unsupported(multiMemory))
		}
		f.SharedMemory = r.pos < len(r.data) && r.data[r.pos]&2 != 0
		minimum, maximum, bounded := r.limits()
		if !bounded {
			maximum = 1 << 16
		}
		f.HasMemory, f.MinPages, f.MaxPages = true, minimum, maximum
		return struct{}{}
	})
	return err
}
