package wasm

import "fmt"

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

// Facts are what a host wants to know of a module before it compiles it.
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
}

// Inspect reads a module's imports, exports and memory, and finds what is too much of it.
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

// signExports gives exported functions their signatures; one of a module that is broken has none.
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
