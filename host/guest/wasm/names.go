package wasm

import "slices"

// Names are the names that a module gives its functions (the name section, WebAssembly Core Specification 2.0, section
// 7.4.1).  The runtime does not get them: they are looked up when a trap is shown, in one pass over the section.
type Names struct{ section []byte }

// Names are a copy of those of the module.
func (m *Module) Names() Names { return Names{slices.Clone(m.names)} }

// maxNames is how long a name section may be, in bytes; names of longer ones are not shown.
const maxNames = 16 << 20

// Find gives the names of functions by their indices, "" for those without one.
func (n Names) Find(functions []uint32) []string {
	const functionNames = 1
	found := make([]string, len(functions))
	if len(n.section) > maxNames {
		return found
	}
	wanted := make(map[uint32][]int)
	for i, each := range functions {
		wanted[each] = append(wanted[each], i)
	}
	for r := (&reader{data: n.section}); r.more(); {
		id, content := r.byte(), r.sub(r.index())
		if id != functionNames {
			continue
		}
		content.vector(func() {
			index, text := content.index(), content.bytes(uint64(content.index()))
			for _, i := range wanted[index] {
				if content.err == nil && found[i] == "" {
					found[i] = string(text[:min(len(text), maxName)])
				}
			}
		})
	}
	return found
}

// maxName is where the name of a function is cut, in bytes.
const maxName = 4096
