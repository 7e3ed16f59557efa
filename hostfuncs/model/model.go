// Package model is the ABI of guests as data: the table of hostfuncs, and what follows from it. For example, which
// parameter counts the elements of which pointer, in which unit a number is, and which errno means what. The
// generators of the SDKs read it, the engine of scripts is made of it, and "rdmarun abi" prints it.
package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"rdmarun/hostfuncs"
)

// Model is the whole ABI.
type Model struct {
	Format       int        `json:"format"` // of this document; grows by a break
	Module       string     `json:"module"`
	Version      string     `json:"version"`
	Number       int32      `json:"number"` // major << 16 | minor, as abi_version has it
	Hash         string     `json:"hash"`
	Capabilities []string   `json:"capabilities"`
	Handles      []string   `json:"handles"` // the kinds
	Functions    []Function `json:"functions"`
	Structs      []Struct   `json:"structs"`
	Enums        []Enum     `json:"enums"`
}

// Function is one function; its result is an i32, negative for an errno.
type Function struct {
	Name       string  `json:"name"`
	Since      string  `json:"since"`
	Capability string  `json:"capability"`
	Waits      bool    `json:"waits,omitempty"`
	Keeps      bool    `json:"keeps_memory,omitempty"`
	Doc        string  `json:"doc"`
	Params     []Param `json:"params"`
	Result     Result  `json:"result"`
	Errors     []Errno `json:"errors,omitempty"`
	ErrorText  string  `json:"-"` // what Errors is taken from
}

// Kinds of parameter.
const (
	Number  = "number"
	Handle  = "handle"
	Pointer = "pointer"
)

// Param is one parameter.
type Param struct {
	Name string `json:"name"`
	Wasm string `json:"wasm"` // i32 or i64
	Kind string `json:"kind"` // number, handle or pointer
	// Type is u32 or i64 of a number, the kind of a handle, and of a pointer a struct, u64, bytes or text.
	Type      string `json:"type"`
	Enum      string `json:"enum,omitempty"`
	Direction string `json:"direction,omitempty"` // of a pointer: in, out or inout, as the host sees it
	// Count names the parameter with the number of elements at a pointer. Size is a number that is always the
	// same. With neither there is one.
	Count    string `json:"count,omitempty"`
	Size     uint32 `json:"size,omitempty"`
	Optional bool   `json:"optional,omitempty"` // may be 0
	Unit     string `json:"unit,omitempty"`
	Doc      string `json:"doc,omitempty"`
}

// Result is what a result of 0 or more means.
type Result struct {
	Handle string `json:"handle,omitempty"` // the kind
	Doc    string `json:"doc,omitempty"`
}

// Errno is what an error means here, beyond its general meaning.
type Errno struct {
	Names []string `json:"names,omitempty"`
	Doc   string   `json:"doc"`
}

// Struct is one struct: little-endian, without hidden padding.
type Struct struct {
	Name  string `json:"name"`
	Size  uint32 `json:"size"`
	Align uint32 `json:"align"`
	// Sized means that it begins with struct_size.
	Sized  bool    `json:"sized,omitempty"`
	Doc    string  `json:"doc"`
	Fields []Field `json:"fields"`
	GoName string  `json:"-"`
}

// Field is one field.
type Field struct {
	Name   string `json:"name"`
	Type   string `json:"type"` // u8 u16 u32 u64 i32, or a struct
	Offset uint32 `json:"offset"`
	Size   uint32 `json:"size"`
	Count  uint32 `json:"count,omitempty"` // of an array
	Enum   string `json:"enum,omitempty"`
	Handle bool   `json:"handle,omitempty"`
	Unit   string `json:"unit,omitempty"`
	Doc    string `json:"doc,omitempty"`
	GoName string `json:"-"`
}

// Enum is one set of constants.
type Enum struct {
	Name   string  `json:"name"`
	Prefix string  `json:"prefix,omitempty"` // of the constants
	Flags  bool    `json:"flags,omitempty"`
	Doc    string  `json:"doc"`
	Values []Value `json:"values"`
	GoName string  `json:"-"`
	GoTo   string  `json:"-"` // what stands for the prefix in Go
}

// Value is one constant, without the prefix.
type Value struct {
	Name  string `json:"name"`
	Value uint32 `json:"value"`
}

// Constant is a value's name with the prefix.
func (e *Enum) Constant(v Value) string {
	if e.Prefix == "" {
		return v.Name
	}
	return e.Prefix + "_" + v.Name
}

// Of makes the model of the table.
func Of() Model {
	m := Model{
		Format: 1, Module: hostfuncs.ModuleName, Version: versionText(hostfuncs.Current),
		Number: hostfuncs.Current.Number(),
		Hash:   fmt.Sprintf("%#08x", hostfuncs.Hash()),
	}
	for _, s := range hostfuncs.Structs() {
		m.Structs = append(m.Structs, m.structOf(s))
	}
	for _, e := range hostfuncs.Enums() {
		m.Enums = append(m.Enums, enumOf(e))
	}
	for _, f := range hostfuncs.Functions() {
		m.Functions = append(m.Functions, functionOf(f))
	}
	for _, f := range m.Functions {
		m.Capabilities = appendNew(m.Capabilities, f.Capability)
		m.Handles = appendNew(m.Handles, f.Result.Handle)
		for _, p := range f.Params {
			if p.Kind == Handle {
				m.Handles = appendNew(m.Handles, p.Type)
			}
		}
	}
	return m
}

func appendNew(to []string, text string) []string {
	if text == "" || slices.Contains(to, text) {
		return to
	}
	return append(to, text)
}

func versionText(v hostfuncs.Version) string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Struct finds a struct by its name.
func (m *Model) Struct(name string) *Struct {
	at := slices.IndexFunc(m.Structs, func(s Struct) bool { return s.Name == name })
	if at < 0 {
		return nil
	}
	return &m.Structs[at]
}

// Enum finds a set of constants by its name.
func (m *Model) Enum(name string) *Enum {
	at := slices.IndexFunc(m.Enums, func(e Enum) bool { return e.Name == name })
	if at < 0 {
		return nil
	}
	return &m.Enums[at]
}

func (m *Model) structOf(from hostfuncs.Struct) Struct {
	s := Struct{Name: from.Name, GoName: from.GoName, Size: from.Size, Doc: from.Doc, Align: 1}
	for _, f := range from.Fields {
		s.Fields = append(s.Fields,
			Field{Name: f.Name, GoName: f.GoName, Type: f.Type, Offset: f.Offset, Size: f.Size, Count: f.Count,
				Enum: f.Enum, Handle: f.Handle, Unit: unitOf(f.Name, f.Doc), Doc: f.Doc})
		s.Align = max(s.Align, m.alignOf(f.Type))
	}
	s.Sized = s.Fields[0].Name == "struct_size"
	return s
}

func (m *Model) alignOf(name string) uint32 {
	switch name {
	case "u8":
		return 1
	case "u16":
		return 2
	case "u32", "i32":
		return 4
	case "u64":
		return 8
	}
	return m.Struct(name).Align
}

func enumOf(from hostfuncs.Enum) Enum {
	e := Enum{
		Name: from.Name, GoName: from.GoName, GoTo: from.GoTo, Prefix: from.Prefix, Flags: from.Flags, Doc: from.Doc,
	}
	for _, v := range from.Values {
		e.Values = append(e.Values, Value{v.Name, v.Value})
	}
	return e
}

func functionOf(from hostfuncs.Function) Function {
	f := Function{Name: from.Name, Since: versionText(from.Since), Capability: from.Capability.String(),
		Waits: from.Blocking,
		Keeps: from.Keeps, Doc: from.Doc, Params: []Param{}, Result: Result{Doc: from.Result},
		Errors: errorsOf(from.Errors), ErrorText: from.Errors}
	for at, p := range from.Params {
		f.Params = append(f.Params, paramOf(p, from.Params[at+1:]))
	}
	f.Result.Handle = handleIn(from.Result)
	return f
}

func paramOf(from hostfuncs.Param, after []hostfuncs.Param) Param {
	p := Param{Name: from.Name, Wasm: "i32", Doc: from.Doc}
	switch from.Type {
	case hostfuncs.U32:
		p.Kind, p.Type, p.Enum, p.Unit = Number, "u32", from.Of, unitOf(from.Name, from.Doc)
	case hostfuncs.I64:
		p.Wasm, p.Kind, p.Type, p.Enum, p.Unit = "i64", Number, "i64", from.Of, unitOf(from.Name, from.Doc)
	case hostfuncs.HandleOf:
		p.Kind, p.Type, p.Optional = Handle, from.Of, mayBeNone.MatchString(from.Doc)
	default:
		p.Kind, p.Type, p.Direction, p.Optional = Pointer, from.Of, from.Type.String(), mayBeNone.MatchString(from.Doc)
		p.Count, p.Size = countOf(from, after)
	}
	return p
}

// mayBeNone finds, in the table's texts, that 0 is valid for a handle or a pointer.
var mayBeNone = regexp.MustCompile(`(^|[;,] )0( for|:| if|,)|may be 0`)

// fixed finds, in the table's texts, that the host reads so many bytes for any size of the guest.
var fixed = regexp.MustCompile(`first (\d+) bytes`)

// countOf finds the parameter that counts the elements at a pointer: a count right after it, or after the pointers that
// follow.
func countOf(p hostfuncs.Param, after []hostfuncs.Param) (count string, size uint32) {
	if found := fixed.FindStringSubmatch(p.Doc); found != nil {
		_, _ = fmt.Sscan(found[1], &size) // digits
		return "", size
	}
	of := p.Of == "bytes" || p.Of == "text"
	for _, next := range after {
		switch {
		case next.Type == hostfuncs.U32 && isCount(next.Name) && (of || strings.Contains(p.Doc, "array")):
			return next.Name, 0
		case next.Type != hostfuncs.Out:
			return "", 0
		}
	}
	return "", 0
}

func isCount(name string) bool {
	return name == "length" || name == "size" || name == "count" || name == "max" || strings.HasPrefix(name, "num_")
}

// unitOf is the unit of a number, from its name or its text.
func unitOf(name, doc string) string {
	for _, unit := range []string{"ns", "us", "ms"} {
		if strings.HasSuffix(name, "_"+unit) {
			return unit
		}
	}
	for _, unit := range []string{"bytes", "kbit/s", "ns", "ms"} {
		if regexp.MustCompile(`(^|[ ,])in ` + unit + `\b`).MatchString(doc) {
			return unit
		}
	}
	return ""
}

// errorsOf takes "EINVAL: why. ENODEV, EIO: why else." apart.
func errorsOf(text string) []Errno {
	var errors []Errno
	starts := errnoStart.FindAllStringSubmatchIndex(text, -1)
	if len(starts) == 0 {
		if text == "" {
			return nil
		}
		return []Errno{{nil, text}}
	}
	for at, start := range starts {
		end := len(text)
		if at+1 < len(starts) {
			end = starts[at+1][0]
		}
		names := errnoName.FindAllString(text[start[0]:start[1]], -1)
		errors = append(errors, Errno{names, strings.TrimSpace(text[start[1]:end])})
	}
	return errors
}

var (
	errnoStart = regexp.MustCompile(`(?:^|\. )(?:E[A-Z0-9]+|Others)[A-Za-z0-9, ]*: `)
	errnoName  = regexp.MustCompile(`\bE[A-Z0-9]{2,}\b`)
)

// handleIn is the kind of handle that a result is: "the CQ's handle".
func handleIn(result string) string {
	of, found := strings.CutSuffix(result, "'s handle")
	if !found {
		return ""
	}
	of = strings.TrimPrefix(strings.TrimPrefix(of, "the "), "new ")
	switch of {
	case "endpoint":
		return "ep"
	case "memory region":
		return "mr"
	case "window":
		return "mw"
	}
	return strings.ToLower(strings.ReplaceAll(of, " ", "_"))
}

// JSON is the model as "rdmarun abi" prints it.
func (m Model) JSON() ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(m)
	return out.Bytes(), err
}
