package trace

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdmarun/host/printable"
	"rdmarun/hostfuncs/model"
)

// values are the structs and the constants of the ABI by their names.
type values struct {
	structs map[string]*structure
	enums   map[string]*enum
}

func newValues(m *model.Model) values {
	v := values{make(map[string]*structure), make(map[string]*enum)}
	for _, e := range m.Enums {
		one := &enum{flags: e.Flags, names: make(map[uint32]string)}
		for _, value := range e.Values {
			one.names[value.Value] = value.Name
			one.values = append(one.values, value)
		}
		v.enums[e.Name] = one
	}
	for _, s := range m.Structs { // each after those that it contains
		one := &structure{name: s.Name, size: s.Size, sized: s.Sized}
		for _, f := range s.Fields {
			if f.Name != "reserved" && f.Name != "struct_size" {
				one.fields = append(one.fields, field{
					f, v.structs[f.Type], v.enums[f.Enum], strings.Contains(f.Doc, "up to a 0 byte"),
				})
			}
		}
		v.structs[s.Name] = one
	}
	return v
}

// enum is a set of constants.
type enum struct {
	flags  bool
	values []model.Value
	names  map[uint32]string
}

// name is a value by its constants, and by a number as far as there are none.
func (e *enum) name(value uint32) string {
	if name := e.names[value]; name != "" {
		return name
	}
	if !e.flags || value == 0 {
		return strconv.FormatUint(uint64(value), 10)
	}
	var set []string
	for _, each := range e.values {
		if each.Value != 0 && value&each.Value == each.Value {
			set = append(set, each.Name)
			value &^= each.Value
		}
	}
	if value != 0 {
		set = append(set, fmt.Sprintf("%#x", value))
	}
	return strings.Join(set, "|")
}

// structure is a struct.
type structure struct {
	name   string
	size   uint32
	sized  bool // it begins with the size that the guest was compiled with
	fields []field
}

type field struct {
	model.Field
	of   *structure
	enum *enum
	text bool // up to a byte of 0
}

// write writes the fields that are not 0.
func (s *structure) write(text *strings.Builder, content []byte) {
	if s.name == "address" {
		text.WriteString(address(content))
		return
	}
	known := s.size
	if s.sized {
		known = binary.LittleEndian.Uint32(content)
	}
	text.WriteString("{")
	first := true
	for _, f := range s.fields {
		if f.Offset >= known {
			continue
		}
		name, shown := s.meaning(f, content)
		if shown == "" {
			value := s.filled(f, content)
			if zero(value) && (f.enum == nil || f.enum.names[0] == "") ||
				flushOnly[f.Name] && !s.has("opcode", content, "FLUSH") {
				continue
			}
			var plain strings.Builder
			f.write(&plain, value)
			shown = plain.String()
		}
		if !first {
			text.WriteString(" ")
		}
		first = false
		text.WriteString(name + "=" + shown)
	}
	text.WriteString("}")
}

// flushOnly are the fields of a work request that only a FLUSH has, one of which has a name for 0.
var flushOnly = map[string]bool{"placement": true, "selectivity": true}

// meaning is the value and the name of a field that depend on another field: imm_data is in network byte order, or a
// key.
func (s *structure) meaning(f field, content []byte) (name, shown string) {
	if f.Name != "imm_data" {
		return f.Name, ""
	}
	value := content[f.Offset : f.Offset+f.Size]
	switch {
	case s.has("opcode", content, "WITH_IMM") || s.has("wc_flags", content, "WITH_IMM"):
		return f.Name, strconv.FormatUint(uint64(binary.BigEndian.Uint32(value)), 10)
	case s.has("opcode", content, "WITH_INV") || s.has("opcode", content, "LOCAL_INV"):
		return "invalidate_rkey", fmt.Sprintf("%#x", unsigned(value))
	case s.has("wc_flags", content, "WITH_INV"):
		return "invalidated_rkey", fmt.Sprintf("%#x", unsigned(value))
	}
	return f.Name, ""
}

// has is whether the names of a field's constants end with this one, of flags those of one of them.
func (s *structure) has(name string, content []byte, constant string) bool {
	for _, f := range s.fields {
		if f.Name == name && f.enum != nil {
			value := f.enum.name(uint32(unsigned(s.content(name, content))))
			return slices.ContainsFunc(strings.Split(value, "|"), func(each string) bool {
				return strings.HasSuffix(each, constant)
			})
		}
	}
	return false
}

// content is that of a field; nothing, if there is none of that name.
func (s *structure) content(name string, content []byte) []byte {
	for _, f := range s.fields {
		if f.Name == name {
			return content[f.Offset : f.Offset+f.Size]
		}
	}
	return nil
}

// filled is a field's content; of an array as many bytes as another field counts.
func (s *structure) filled(f field, content []byte) []byte {
	value := content[f.Offset : f.Offset+f.Size]
	for _, other := range s.fields {
		if f.Count > 0 && other.Name == f.Name+"_len" {
			value = value[:min(uint64(len(value)), unsigned(content[other.Offset:other.Offset+other.Size]))]
		}
	}
	return value
}

func (f *field) write(text *strings.Builder, value []byte) {
	switch {
	case f.of != nil:
		size := f.of.size
		for at := uint32(0); at+size <= f.Size && at/size < maxElements; at += size {
			f.of.write(text, value[at:at+size])
		}
	case f.Count > 0 && f.text:
		value, _, _ = bytes.Cut(value, []byte{0})
		text.WriteString(quoted(value, 0, uint32(len(value))))
	case f.Count > 0:
		text.WriteString(hex.EncodeToString(value[:min(len(value), maxBytes)]))
		if len(value) > maxBytes {
			fmt.Fprintf(text, "... of %d bytes", len(value))
		}
	case f.Handle:
		text.WriteString(handle(uint32(unsigned(value))))
	case f.enum != nil:
		text.WriteString(f.enum.name(uint32(unsigned(value))))
	case f.Type == "i32":
		text.WriteString(number(f.Name, f.Unit, int64(int32(unsigned(value)))))
	case unsigned(value) > 1<<62:
		fmt.Fprintf(text, "%#x", unsigned(value))
	default:
		text.WriteString(number(f.Name, f.Unit, int64(unsigned(value))))
	}
}

// number is one as people read it: times with their unit, addresses and keys in hex.
func number(name, unit string, value int64) string {
	switch {
	case unit == "ns" && value >= 0:
		return time.Duration(value).String()
	case value >= 0 && (strings.HasSuffix(name, "addr") || strings.HasSuffix(name, "key")):
		return fmt.Sprintf("%#x", value)
	}
	return strconv.FormatInt(value, 10)
}

func handle(value uint32) string {
	if value == 0 {
		return "0"
	}
	return fmt.Sprintf("%#x", value)
}

// address is an IP address and port.
func address(content []byte) string {
	port := binary.LittleEndian.Uint16(content[2:])
	switch family := binary.LittleEndian.Uint16(content); family {
	case 0:
		return "none"
	case 2:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(content[8:12])), port).String()
	case 10:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(content[8:24])), port).String()
	default:
		return fmt.Sprintf("{family=%d}", family)
	}
}

// quoted is a text of the guest's.
func quoted(memory []byte, address, length uint32) string {
	if uint64(address)+uint64(length) > uint64(len(memory)) {
		return fmt.Sprintf("%#x, outside its memory", address)
	}
	shown := memory[address:][:min(length, maxBytes)]
	text := strconv.Quote(printable.Line(string(shown)))
	if uint32(len(shown)) < length {
		text += fmt.Sprintf("... of %d bytes", length)
	}
	return text
}

// maxWhy is where the host's sentence about an error is cut, in bytes.
const maxWhy = 240

func clipped(text string) string {
	if len(text) > maxWhy {
		return strings.ToValidUTF8(text[:maxWhy], "") + "..."
	}
	return text
}

func zero(content []byte) bool {
	for _, b := range content {
		if b != 0 {
			return false
		}
	}
	return true
}

// unsigned is a little-endian number of up to eight bytes.
func unsigned(content []byte) uint64 {
	var value uint64
	for at, b := range content {
		value |= uint64(b) << (8 * at)
	}
	return value
}
