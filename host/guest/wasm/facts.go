package wasm

import "strings"

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
}

// Export is one export of a module.
type Export struct {
	Name      string
	Kind      Kind
	Signature Signature // functions
	index     uint32
}

// Facts are what a host needs of a module before it compiles it.
type Facts struct {
	Imports []Import
	Exports []Export
	// HasMemory is true when the module defines a memory. MinPages and MaxPages are its limits in pages of 64 KiB.
	// MaxPages is 65536 when it declares none.
	HasMemory          bool
	SharedMemory       bool // for several threads
	MinPages, MaxPages uint64
	// InstanceSize is what each instance takes in addition to its memory, in bytes: tables, globals, functions,
	// segments.
	InstanceSize uint64
	// Features are those that its types and constants are of, and after Validate its instructions, too.
	Features Features
	// Size is that of the file, in bytes.
	Size int
	// Custom are its custom sections, Producers the tools that it names as its makers.
	Custom    []Custom
	Producers []string
}

// Custom is a custom section.
type Custom struct {
	Name string
	Size int // in bytes
}

// maxCustom bounds the custom sections, and the producers, that are listed.
const maxCustom = 1024

// custom reads a custom section.  None of them reaches the runtime, so the bytes behind the name need not be valid.
func (m *Module) custom(r *reader) {
	size := len(r.data) - r.pos
	name := r.name()
	if r.err != nil {
		return
	}
	content := r.bytes(uint64(len(r.data) - r.pos))
	if len(m.Facts.Custom) < maxCustom {
		m.Facts.Custom = append(m.Facts.Custom, Custom{name, size})
	}
	switch name {
	case "name":
		m.names = content
	case "producers":
		m.producers(&reader{data: content})
	case ".debug_line", ".debug_line_str", ".debug_str", "sourceMappingURL":
		if m.lines == nil {
			m.lines = &Lines{}
		}
		m.lines.section(name, content)
	}
}

// producers reads the tools that made the module (the tool conventions of WebAssembly).
func (m *Module) producers(r *reader) {
	if m.Facts.Producers != nil {
		return
	}
	r.vector(func() {
		r.name() // language, processed-by, sdk
		r.vector(func() {
			name, version := r.name(), r.name()
			if len(m.Facts.Producers) >= maxCustom {
				r.fail(errNumber)
			}
			if r.err == nil {
				m.Facts.Producers = append(m.Facts.Producers, strings.TrimSpace(name+" "+version))
			}
		})
	})
}
