// Package calls has the description of the calls that "rdmarun trace" knows: calls.txt. The library that records calls
// is generated from it (generate), and package trace reads records by it.
package calls

import (
	_ "embed"
	"fmt"
	"hash/fnv"
	"regexp"
	"strings"
)

//go:generate go run ./generate ../../../rdmacore/trace

//go:embed calls.txt
var text string

// Kind says how a value is recorded, and how it is shown.
type Kind int

// Each is one word of a record, but for those that say otherwise.
const (
	Int Kind = iota
	Unsigned
	Hex
	Bool
	Port
	Pointer
	Handle   // an object; Type is its kind
	Enum     // Type is that of names
	Flags    // likewise
	String   // its length, then its bytes
	Bytes    // likewise
	Sockaddr // likewise, as the C library has it
	GID      // two words
	Struct   // the pointer, and then the fields unless it is NULL; Type is its name
)

// Value is a parameter, a result, or a field.
type Value struct {
	// Name is what the value is called in the output, Code what it is in C.
	Name, Code string
	// C is the type in C.
	C string
	// Kind and Type say how it is recorded.
	Kind Kind
	Type string
	// Length is the code of the length of Bytes.
	Length string
	// Out is set for what a call writes. Get is set for code that is read after the call. From is set for code that is
	// read before it.
	Out, Get, From bool
	// Nonzero is set for what is not shown when it is zero, Hidden for what is never shown.
	Nonzero, Hidden bool
}

// Call is one function.
type Call struct {
	Number int
	Name   string
	// Shown is the name that programs know, which may be that of an inline function.
	Shown  string
	Group  string
	Values []Value
	// Result is what it returns; its C is "void" for nothing.
	Result Value
	// Count is set when the result is a number, and not a success or an errno.
	Count bool
	// Hand is set when the function is written by hand.
	Hand bool
	// Op and Ops are the members of verbs_context and ibv_context_ops of a function without a symbol.
	Op, Ops string
	// Frees is the name of the value that does not exist after success.
	Frees string
	// Before and After are code that runs before the call, and after its success.
	Before, After string
}

// Table is all of it.
type Table struct {
	Calls   []Call
	Structs map[string][]Value
	// Order has the names of Structs as the text has them.
	Order []string
	// Sum is that of the text: a library of another table writes other records.
	Sum uint32
}

// handles are the kinds of objects by the names of their structs.
var handles = map[string]string{
	"rdma_event_channel": "channel", "rdma_cm_id": "id", "ibv_context": "ctx", "ibv_device": "device", "ibv_pd": "pd",
	"ibv_mr": "mr", "ibv_mw": "mw", "ibv_comp_channel": "comp", "ibv_cq": "cq", "ibv_cq_ex": "cq", "ibv_qp": "qp",
	"ibv_qp_ex": "qp", "ibv_srq": "srq", "ibv_xrcd": "xrcd", "ibv_ah": "ah", "ibv_td": "td",
}

// Load reads the description.
func Load() (*Table, error) { return parse(text) }

var (
	structLine = regexp.MustCompile(`^struct (\w+) \{$`)
	groupLine  = regexp.MustCompile(`^group (\w+)$`)
	callLine   = regexp.MustCompile(`^call ([^(]*?)(\w+)(\(.*)$`)
	annotation = regexp.MustCompile(` @(\w+)`)
	declared   = regexp.MustCompile(`^(.*[ *])([\w.]+)$`)
)

func parse(text string) (*Table, error) {
	t := &Table{Structs: map[string][]Value{}}
	sum := fnv.New32a()
	sum.Write([]byte(text))
	t.Sum = sum.Sum32()
	group, inside := "", ""
	for i, line := range strings.Split(text, "\n") {
		var err error
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case inside != "" && line == "}":
			inside = ""
		case inside != "":
			var field Value
			if field, err = t.value(line); err == nil {
				t.Structs[inside] = append(t.Structs[inside], field)
			}
		case structLine.MatchString(line):
			inside = structLine.FindStringSubmatch(line)[1]
			t.Order = append(t.Order, inside)
			t.Structs[inside] = nil
		case groupLine.MatchString(line):
			group = groupLine.FindStringSubmatch(line)[1]
		default:
			err = t.call(line, group)
		}
		if err != nil {
			return nil, fmt.Errorf("calls.txt:%d: %w", i+1, err)
		}
	}
	return t, nil
}

// call adds the call of a line.
func (t *Table) call(line, group string) error {
	match := callLine.FindStringSubmatch(line)
	if match == nil {
		return fmt.Errorf("%q is no call", line)
	}
	c := Call{Number: len(t.Calls) + 1, Name: match[2], Shown: match[2], Group: group}
	list, rest, err := parenthesis(match[3])
	if err != nil {
		return err
	}
	result, err := t.value(match[1] + "result")
	if err != nil {
		return err
	}
	c.Result = result
	for _, parameter := range parameters(list) {
		value, err := t.value(parameter)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		c.Values = append(c.Values, value)
	}
	notes, err := annotations(rest)
	if err != nil {
		return err
	}
	for _, note := range notes {
		switch note.name {
		case "hand":
			c.Hand = true
		case "count":
			c.Count = true
		case "port":
			c.Count, c.Result.Kind = true, Port
		case "hex":
			c.Count, c.Result.Kind = true, Hex
		case "op":
			c.Op = note.argument
		case "ops":
			c.Ops = note.argument
		case "shown":
			c.Shown = note.argument
		case "frees":
			c.Frees = note.argument
		case "before":
			c.Before = note.argument
		case "after":
			c.After = note.argument
		default:
			return fmt.Errorf("%s: unknown annotation @%s", c.Name, note.name)
		}
	}
	t.Calls = append(t.Calls, c)
	return nil
}

// parameters splits at commas outside of parentheses.
func parameters(list string) (each []string) {
	depth, from := 0, 0
	for i, r := range list {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				each, from = append(each, strings.TrimSpace(list[from:i])), i+1
			}
		}
	}
	if rest := strings.TrimSpace(list[from:]); rest != "" {
		each = append(each, rest)
	}
	return each
}

// value reads a declaration with its annotations.
func (t *Table) value(line string) (v Value, err error) {
	declaration, rest := line, ""
	if at := annotation.FindStringIndex(line); at != nil {
		declaration, rest = line[:at[0]], line[at[0]:]
	}
	match := declared.FindStringSubmatch(strings.TrimSpace(declaration))
	if match == nil {
		return v, fmt.Errorf("%q is no declaration", declaration)
	}
	v.C, v.Code = strings.TrimSpace(match[1]), match[2]
	v.Name = v.Code[strings.LastIndex(v.Code, ".")+1:]
	notes, err := annotations(rest)
	if err != nil {
		return v, err
	}
	for _, note := range notes {
		if note.name == "out" {
			v.Out = true
		}
	}
	t.classify(&v)
	for _, note := range notes {
		switch note.name {
		case "out":
		case "get":
			v.Get, v.Code = true, note.argument
		case "from":
			v.From, v.Code = true, note.argument
		case "as":
			v.Name = note.argument
		case "nz":
			v.Nonzero = true
		case "hide":
			v.Hidden = true
		case "enum":
			v.Kind, v.Type = Enum, note.argument
		case "flags":
			v.Kind, v.Type = Flags, note.argument
		case "bytes":
			v.Kind, v.Length = Bytes, note.argument
		case "hex":
			v.Kind = Hex
		case "bool":
			v.Kind = Bool
		case "port":
			v.Kind = Port
		case "pointer":
			v.Kind = Pointer
		case "gid":
			v.Kind = GID
		default:
			return v, fmt.Errorf("unknown annotation @%s", note.name)
		}
	}
	return v, nil
}

type note struct{ name, argument string }

// annotations splits " @a @b(c(d))".
func annotations(text string) (notes []note, err error) {
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		if text[0] != '@' {
			return nil, fmt.Errorf("expected an annotation at %q", text)
		}
		end := strings.IndexAny(text, " (")
		if end < 0 {
			end = len(text)
		}
		n := note{name: text[1:end]}
		text = text[end:]
		if strings.HasPrefix(text, "(") {
			if n.argument, text, err = parenthesis(text); err != nil {
				return nil, fmt.Errorf("@%s: %w", n.name, err)
			}
		}
		notes = append(notes, n)
	}
	return notes, nil
}

// parenthesis splits a text behind the parenthesis that it begins with.
func parenthesis(text string) (inside, rest string, err error) {
	depth := 0
	for i, r := range text {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			return text[1:i], text[i+1:], nil
		}
	}
	return "", "", fmt.Errorf("a parenthesis of %q is open", text)
}

// classify finds the kind of a type.
func (t *Table) classify(v *Value) {
	c := strings.TrimPrefix(v.C, "const ")
	stars := strings.Count(c, "*")
	base := strings.TrimSpace(strings.TrimRight(c, "* "))
	if v.Out && stars > 0 {
		stars-- // what is recorded is what it points to
	}
	name, isStruct := strings.CutPrefix(base, "struct ")
	enum, isEnum := strings.CutPrefix(base, "enum ")
	_, described := t.Structs[name]
	switch {
	case isStruct && stars == 1 && handles[name] != "":
		v.Kind, v.Type = Handle, handles[name]
	case isStruct && (stars == 1 || v.Out && stars == 0) && described:
		v.Kind, v.Type = Struct, name
	case isStruct && name == "sockaddr" && stars == 1:
		v.Kind = Sockaddr
	case base == "union ibv_gid":
		v.Kind = GID
	case isEnum && stars == 0:
		v.Kind, v.Type = Enum, enum
	case base == "char" && stars == 1:
		v.Kind = String
	case stars > 0:
		v.Kind = Pointer
	case strings.HasPrefix(base, "int") || base == "ssize_t":
		v.Kind = Int
	default:
		v.Kind = Unsigned
	}
}
