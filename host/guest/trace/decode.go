package trace

import (
	"fmt"
	"strconv"
	"strings"

	"rdmarun/host/printable"
	"rdmarun/hostfuncs"
	"rdmarun/hostfuncs/model"
)

// call is a function with all that is needed to show a call of it.
type call struct {
	name   string
	params []param
	// counted: the result is the number of elements at the pointer that the host writes.
	counted bool
	handle  bool // the result is one
	errors  map[uint32]string
}

// param is a parameter of it.
type param struct {
	model.Param
	enum   *enum
	of     *structure // what a pointer points to; nil for u64, bytes and text
	count  int        // index of the parameter that counts the elements; -1: one
	silent bool       // it only counts what is shown
}

func callsOf(m *model.Model) map[string]*call {
	values := newValues(m)
	errors := make(map[uint32]string)
	for _, each := range m.Enum("errno").Values {
		errors[each.Value] = each.Name
	}
	calls := make(map[string]*call)
	for _, f := range m.Functions {
		c := &call{
			name: f.Name, handle: f.Result.Handle != "", counted: strings.HasPrefix(f.Result.Doc, "the number of"),
			errors: errors,
		}
		index := make(map[string]int)
		for at, p := range f.Params {
			index[p.Name] = at
		}
		for _, p := range f.Params {
			one := param{Param: p, enum: values.enums[p.Enum], of: values.structs[p.Type], count: -1}
			if at, counts := index[p.Count]; counts {
				one.count = at
			}
			c.params = append(c.params, one)
		}
		for _, p := range c.params {
			if p.count >= 0 && p.Direction != "out" {
				c.params[p.count].silent = true
			}
		}
		calls[f.Name] = c
	}
	return calls
}

// maxText is where a line is cut, in bytes.
const maxText = 1024

// before writes the call as far as it is known before it is made.
func (c *call) before(text *strings.Builder, memory []byte, given []uint64) {
	text.WriteString("rdma." + c.name + "(")
	first := true
	for at, p := range c.params {
		// The host reads only the size of a struct that it fills.
		if p.silent ||
			p.Kind == model.Pointer && (p.Direction == "out" || p.Direction == "inout" && p.of != nil && p.of.sized) {
			continue
		}
		if !first {
			text.WriteString(", ")
		}
		first = false
		if text.Len() > maxText {
			text.WriteString("...")
			break
		}
		text.WriteString(p.Name + "=")
		p.write(text, memory, given, given[at], p.elements(given))
	}
	text.WriteString(")")
}

// after writes the result, and what the host has written.
func (c *call) after(text *strings.Builder, instance *hostfuncs.Instance, given []uint64, result int32) {
	switch {
	case result < 0:
		name := c.errors[uint32(-result)]
		if name == "" {
			name = strconv.Itoa(int(-result))
		}
		fmt.Fprintf(text, " = -%s", name)
		if why := instance.LastError(); why != nil {
			fmt.Fprintf(text, " (%s)", clipped(printable.Line(why.Error())))
		}
		return
	case c.handle:
		fmt.Fprintf(text, " = %#x", uint32(result))
	default:
		fmt.Fprintf(text, " = %d", result)
	}
	for at, p := range c.params {
		address := uint32(given[at])
		if p.Kind != model.Pointer || p.Direction == "in" || address == 0 || text.Len() > maxText {
			continue
		}
		elements := p.elements(given)
		if p.count >= 0 && c.counted && p.Direction == "out" {
			elements = min(elements, uint32(result))
		}
		if elements == 0 {
			continue
		}
		text.WriteString(", " + p.Name + "=")
		if p.of != nil && p.of.name == "poll_entry" {
			p.ready(text, instance.Memory(), address, elements)
		} else {
			p.write(text, instance.Memory(), given, given[at], elements)
		}
	}
}

// ready writes the entries of poll_set in which something is ready: they may be anywhere in the array.
func (p *param) ready(text *strings.Builder, memory []byte, address, elements uint32) {
	var found []byte
	for at := uint64(address); elements > 0 && at+uint64(p.of.size) <= uint64(len(memory)); at += uint64(p.of.size) {
		if entry := memory[at : at+uint64(p.of.size)]; !zero(p.of.content("revents", entry)) {
			found = append(found, entry...)
		}
		elements--
	}
	p.array(text, found, 0, uint32(len(found))/p.of.size)
}

// elements is how many are at a pointer.
func (p *param) elements(given []uint64) uint32 {
	switch {
	case p.count >= 0:
		return uint32(given[p.count])
	case p.Size != 0:
		return p.Size
	}
	return 1
}

// maxElements is how many elements of an array are shown, and maxBytes how much of a text.
const (
	maxElements = 4
	maxBytes    = 64
)

// write writes one argument.
func (p *param) write(text *strings.Builder, memory []byte, given []uint64, value uint64, elements uint32) {
	switch {
	case p.Kind == model.Handle:
		text.WriteString(handle(uint32(value)))
	case p.Kind == model.Number && p.Wasm == "i64":
		text.WriteString(number(p.Name, p.Unit, int64(value)))
	case p.Kind == model.Number && p.enum != nil:
		text.WriteString(p.enum.name(uint32(value)))
	case p.Kind == model.Number:
		text.WriteString(number(p.Name, p.Unit, int64(uint32(value))))
	case uint32(value) == 0:
		text.WriteString("0")
	case p.Type == "text":
		text.WriteString(quoted(memory, uint32(value), elements))
	case p.Type == "bytes":
		fmt.Fprintf(text, "%d bytes at %#x", elements, uint32(value))
	default:
		p.array(text, memory, uint32(value), elements)
	}
}

// array writes structs or numbers in the guest's memory.
func (p *param) array(text *strings.Builder, memory []byte, address, elements uint32) {
	if p.count >= 0 {
		text.WriteString("[")
		defer text.WriteString("]")
	}
	size := uint32(8)
	if p.of != nil {
		size = p.of.size
	}
	for at := range elements {
		if at > 0 {
			text.WriteString(" ")
		}
		if at == maxElements || text.Len() > maxText {
			fmt.Fprintf(text, "and %d more", elements-at)
			return
		}
		from := uint64(address) + uint64(at)*uint64(size)
		if from+uint64(size) > uint64(len(memory)) {
			fmt.Fprintf(text, "%#x, outside its memory", address)
			return
		}
		content := memory[from : from+uint64(size)]
		if p.of == nil {
			text.WriteString(strconv.FormatUint(unsigned(content), 10))
		} else {
			p.of.write(text, content)
		}
	}
}
