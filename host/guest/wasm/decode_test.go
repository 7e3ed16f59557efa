package wasm

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// inspect decodes and validates a module.
func inspect(file []byte) (Facts, error) {
	m, err := Decode(file)
	if err != nil {
		return Facts{}, err
	}
	err = m.Validate()
	return m.Facts, err
}

// part is one section, with its size.
func part(id byte, content string) string {
	return string(append(appendUnsigned([]byte{id}, uint64(len(content))), content...))
}

// assembled is a module of these sections.
func assembled(sections ...string) []byte {
	return []byte(string(header) + strings.Join(sections, ""))
}

// oneFunction is a module with a function () -> (), of these bytes from its local variables on, and a memory.
func oneFunction(body string, sections ...string) []byte {
	sized := string(appendUnsigned(nil, uint64(len(body)))) + body
	return assembled(append(append(
		[]string{part(sectionType, "\x01\x60\x00\x00"), part(sectionFunction, "\x01\x00")}, sections...,
	),
		part(sectionCode, "\x01"+sized))...)
}

const (
	oneTable  = "\x04\x04\x01\x70\x00\x01"
	oneMemory = "\x05\x03\x01\x00\x01"
)

// A module that deviates from the specification is rejected, with the place and the reason.
func TestRefusals(t *testing.T) {
	const noCode = "\x01\x60\x00\x00"
	for name, c := range map[string]struct {
		module []byte
		want   string
	}{
		// What wazero's validator and its compiler read in two ways.
		"select of 0x64": {
			oneFunction("\x00\x41\x00\x41\x00\x41\x00\x1c\x01\x64\x70\x1a\x0b"),
			"at byte 0x1f: it uses a feature of WebAssembly that guests cannot have: typed function references",
		},
		"select of 0x63": {oneFunction("\x00\x1c\x01\x63\x70\x1a\x0b"), "typed function references"},
		"block of 0x63":  {oneFunction("\x00\x02\x63\x70\x0b\x1a\x0b"), "typed function references"},
		"local of 0x64":  {oneFunction("\x01\x01\x64\x70\x0b"), "typed function references"},
		"long vector opcode": {
			oneFunction("\x00\xfd\x8c\x00\x0b"),
			"function 0, at byte 0x17: instruction 0xfd 12 is written with more bytes than it needs",
		},
		"long bulk opcode": {
			oneFunction("\x00\xfc\x89\x00\x00\x0b"), "instruction 0xfc 9 is written with more bytes",
		},
		"long atomic opcode": {
			oneFunction("\x00\xfe\x83\x00\x00\x0b"), "instruction 0xfe 3 is written with more bytes",
		},

		"import of no module": {
			assembled(part(1, noCode), part(2, "\x01\x00\x01f\x00\x00")),
			"at byte 0x14: import section: an import has an empty module name",
		},

		"unknown section":       {assembled(part(14, "")), "at byte 0x8: section 14 is not known"},
		"section twice":         {assembled(part(1, "\x00"), part(1, "\x00")), "there are two type sections"},
		"section out of order":  {assembled(part(3, "\x00"), part(1, "\x00")), "the type section is out of order"},
		"section too long":      {assembled(part(1, "\x00\x00")), "type section: it is longer than what it holds"},
		"section too short":     {assembled(part(1, "\x01\x60\x00")), "type section: it ends in the middle"},
		"number of 6 bytes":     {assembled(part(1, "\x80\x80\x80\x80\x80\x00")), "a number is longer than its type"},
		"number of 33 bits":     {assembled(part(1, "\xff\xff\xff\xff\x1f")), "a number is longer than its type"},
		"custom without a name": {assembled(part(0, "")), "custom section: it ends in the middle"},
		"name that is no UTF-8": {assembled(part(0, "\x01\xff")), "a name is not UTF-8"},
		"export twice": {
			oneFunction("\x00\x0b", part(7, "\x02\x01a\x00\x00\x01a\x00\x00")),
			`export section: there are two exports "a"`,
		},
		"export of the host": {
			oneFunction("\x00\x0b", part(7, "\x01\x0crdmarun:stop\x00\x00")),
			`export "rdmarun:stop" has a name that is kept for the host`,
		},
		"export of nothing": {
			oneFunction("\x00\x0b", part(7, "\x01\x01a\x00\x01")),
			`export "a" is number 1 of its kind, and there are 1`,
		},
		"function without body": {
			assembled(part(1, noCode), part(3, "\x01\x00")), "the code section has 0 bodies for 1 functions",
		},
		"body without function": {
			assembled(part(1, noCode), part(10, "\x01\x02\x00\x0b")), "the code section has 1 bodies for 0 functions",
		},
		"unknown type": {
			assembled(part(1, noCode), part(3, "\x01\x01")), "a function has type 1, and there are 1",
		},
		"start that takes": {
			assembled(
				part(1, "\x01\x60\x01\x7f\x00"), part(3, "\x01\x00"), part(8, "\x00"), part(10, "\x01\x02\x00\x0b"),
			),
			"the start function 0 is none, or takes or gives values",
		},
		"memory of 5GiB": {assembled(part(5, "\x01\x00\x80\x80\x05")), "a memory has more than 65536 pages"},
		"table of 2^28": {
			assembled(part(4, "\x01\x70\x00\x80\x80\x80\x80\x01")),
			"at byte 0xb: table section: a table begins with 268435456 elements; the limit is 134217728",
		},
		"maximum below minimum": {
			assembled(part(5, "\x01\x01\x02\x01")), "limits have a maximum of 1, below their minimum of 2",
		},
		"initial value of table": {
			assembled(part(4, "\x01\x40\x00\x70\x00\x00\xd0\x70\x0b")), "typed function references",
		},
		"data count": {
			assembled(part(12, "\x01"), part(11, "\x00")),
			"the data count section says 1, and there are 0 data segments",
		},
		"data without memory": {
			assembled(part(11, "\x01\x00\x41\x00\x0b\x00")), "a data segment is for a memory, and there is none",
		},
		"own global in constant": {
			assembled(part(6, "\x02\x7f\x00\x41\x00\x0b\x7f\x00\x23\x00\x0b")),
			"global.get has global 0 in a constant expression",
		},
		"call in constant": {assembled(part(6, "\x01\x7f\x00\x10\x00\x0b")), "call is no constant expression"},
		"segment for a table": {
			assembled(part(9, "\x01\x00\x41\x00\x0b\x00")), "a segment is for table 0, and there are 0",
		},

		"unknown instruction": {
			oneFunction("\x00\x27\x0b"), "function 0, at byte 0x17: instruction 0x27 is not known",
		},
		"type on the stack": {
			oneFunction("\x00\x42\x00\x45\x1a\x0b"),
			"function 0, at byte 0x19: i32.eqz takes i32, and the stack has i64",
		},
		"selected nowhere": {
			oneFunction("\x00\x00\x1c\x01\x70\x4c\x1a\x0b"), "i32.le_s takes i32, and the stack has funcref",
		},
		"empty stack": {
			oneFunction("\x00\x1a\x0b"), "drop takes a value, and the stack of its block is empty",
		},
		"values left": {
			oneFunction("\x00\x41\x00\x0b"), "end leaves 1 more values on the stack than its block gives",
		},
		"branch too far": {oneFunction("\x00\x0c\x01\x0b"), "br branches out of 1 blocks, and is in 1"},
		"unknown local": {
			oneFunction("\x00\x20\x00\x1a\x0b"), "local.get has local variable 0, and there are 0",
		},
		"the host's global": {oneFunction("\x00\x23\x00\x1a\x0b"), "global.get has global 0, and there are 0"},
		"no memory":         {oneFunction("\x00\x3f\x00\x1a\x0b"), "memory.size needs a memory, and there is none"},
		"alignment": {
			oneFunction("\x00\x41\x00\x28\x03\x00\x1a\x0b", oneMemory),
			"i32.load has an alignment of 2^3 bytes, more than it accesses",
		},
		"atomic alignment": {
			oneFunction("\x00\x41\x00\xfe\x10\x00\x00\x1a\x0b", oneMemory),
			"i32.atomic.load has an alignment of 2^0 bytes, and needs 2^2",
		},
		"lane":       {oneFunction("\x00\x41\x00\xfd\x0f\xfd\x15\x10\x1a\x0b"), "lane 16 is not one of 16"},
		"block type": {oneFunction("\x00\x02\x01\x0b\x0b"), "a block has type 1, and there are 1 types"},
		"long block type": {
			oneFunction("\x00\x02\xc0\x7f\x0b\x0b"), "block type -64 is written with more bytes than it needs",
		},
		"undeclared function": {
			oneFunction("\x00\xd2\x00\x1a\x0b"), "ref.func has function 0, which no segment, export or global names",
		},
		"memory.init uncounted": {
			oneFunction("\x00\x41\x00\x41\x00\x41\x00\xfc\x08\x00\x00\x0b", oneMemory),
			"memory.init has data segment 0, and the data count section says 0",
		},
		"if without else": {
			oneFunction("\x00\x41\x00\x04\x7f\x41\x00\x0b\x1a\x0b"), "end ends an if without an else",
		},
		"else without if": {oneFunction("\x00\x05\x0b"), "else is not in an if"},
		"behind the end":  {oneFunction("\x00\x0b\x01"), "it continues after its end"},
		"no end":          {oneFunction("\x00\x01"), "it ends in the middle of something"},
		"nesting": {
			oneFunction("\x00" + strings.Repeat("\x02\x40", maxNesting) + strings.Repeat("\x0b", maxNesting+1)),
			"block is nested in more than 32768 blocks",
		},
		"locals": {
			oneFunction("\x02\x00\x7f\xff\xff\xff\xff\x0f\x7f\x0b"),
			"a function has 4294967295 local variables; the limit is 50000",
		},
		"targets": {
			oneFunction("\x00\x0e\x80\x80\x80\x80\x01\x0b"), "br_table has 268435456 targets; the limit is 65536",
		},
		"operands": {
			oneFunction("\x00" + strings.Repeat("\x41\x00", maxOperands+1) + "\x00\x0b"),
			"i32.const has more than 65536 values on the stack",
		},
		"table type": {
			oneFunction("\x00\x41\x00\x11\x00\x00\x0b", part(4, "\x01\x6f\x00\x01")),
			"call_indirect has a table of other things than functions",
		},
	} {
		_, err := inspect(c.module)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
		if unsupported := (*UnsupportedError)(nil); !errors.As(err, &unsupported) && !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v is of no kind", name, err)
		}
		if _, err := meter(c.module); err == nil {
			t.Errorf("%s: it was rewritten", name)
		}
	}
}

// Code that is not reached may branch to targets that take along different types, if the stack has none of other types.
func TestBranchesToDifferentTypes(t *testing.T) {
	const types = "\x03\x60\x00\x00\x60\x00\x02\x7f\x7e\x60\x00\x02\x7f\x7f"
	for operands, want := range map[string]string{
		"":         "",
		"\x1b":     "", // select, of any type
		"\x1b\x1b": "",
		"\x41\x00": "br_table takes i64, and the stack has i32",
	} {
		body := "\x00\x02\x01\x02\x02\x00" + operands + "\x41\x00\x0e\x01\x00\x01\x0b\x00\x0b\x00\x0b"
		sized := string(appendUnsigned(nil, uint64(len(body)))) + body
		module := assembled(
			part(sectionType, types), part(sectionFunction, "\x01\x00"), part(sectionCode, "\x01"+sized),
		)
		_, err := inspect(module)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%x: %v, not %q", operands, err, want)
		}
		if theirs := validWithoutCode(module); (theirs == nil) != (want == "") {
			t.Errorf("%x: wazero: %v", operands, theirs)
		}
	}
}

// Bodies of 64 MiB can take a minute to validate; who wants the module may have given up by then.
func TestMeteringEndsWithItsContext(t *testing.T) {
	decoded, err := Decode(oneFunction("\x00\x0b"))
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(gone)
	if _, err := decoded.Meter(ctx); !errors.Is(err, gone) {
		t.Errorf("%v, not %v", err, gone)
	}
}

// What is written in another way than the shortest, where the specification has it so, is the same module for the
// runtime.
func TestOneEncoding(t *testing.T) {
	short, err := meter(oneFunction("\x01\x02\x7f\x41\x01\x21\x00\x0b"))
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{
		"index":    "\x01\x02\x7f\x41\x01\x21\x80\x80\x00\x0b",
		"constant": "\x01\x02\x7f\x41\x81\x80\x80\x80\x00\x21\x00\x0b",
		"locals":   "\x04\x80\x00\x7e\x01\x7f\x00\x7d\x81\x00\x7f\x41\x01\x21\x00\x0b",
	} {
		long, err := meter(oneFunction(body, part(0, "\x04name\x01\x06\x01\x00\x03abc"), part(0, "\x01x")))
		if err != nil || !bytes.Equal(long.Module, short.Module) {
			t.Errorf("%s: %v\n%x\n%x", name, err, long.Module, short.Module)
		}
	}
}

// No custom section reaches the runtime, whatever it holds.
func TestCustomSectionsStayOutside(t *testing.T) {
	huge := "\x01\x05\xff\xff\xff\xff\x0f" // the names of 2^32-1 functions
	file := oneFunction("\x00\x0b", part(0, "\x04name"+huge), part(0, "\x04linkmarker"))
	rewritten, err := meter(file)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(rewritten.Module, []byte("name")) || bytes.Contains(rewritten.Module, []byte("linkmarker")) {
		t.Errorf("the runtime gets %q", rewritten.Module)
	}
	if names := decoded.Names().Find([]uint32{0}); names[0] != "" {
		t.Errorf("function 0 is %q", names[0])
	}
}

func TestFunctionNames(t *testing.T) {
	section := "\x00\x02\x01m" + "\x01\x0c\x03\x00\x01a\x02\x03c\nd\x05\x00" + "\x02\x01\x00"
	names := Names{[]byte(section)}
	got := names.Find([]uint32{2, 0, 1, 0, 5})
	if want := []string{"c\nd", "a", "", "a", ""}; !equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	for length := range section {
		Names{[]byte(section[:length])}.Find([]uint32{0, 1})
	}
}

func equal(a, b []string) bool {
	return strings.Join(a, "|") == strings.Join(b, "|") && len(a) == len(b)
}

// A line table is read in the time of its own length, even if its entries all refer to one text of many megabytes.
func TestLineTableWithOneLongText(t *testing.T) {
	const entries = 1 << 20
	folders := "\x01\x01\x1f" + string(appendUnsigned(nil, entries)) + strings.Repeat("\x00\x00\x00\x00", entries)
	files := "\x02\x01\x1f\x02\x0b\x02" + "\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00"
	header := "\x01\x01\x01\xfb\x0e\x0d\x00\x01\x01\x01\x01\x00\x00\x00\x01\x00\x00\x01" + folders + files
	content := "\x05\x00\x04\x00" + string(fixed32(len(header))) + header +
		"\x00\x05\x02\x10\x00\x00\x00\x03\x01\x01\x02\x08\x01\x00\x01\x01"
	tables := lineTables{
		program: append(fixed32(len(content)), content...), lineStrings: bytes.Repeat([]byte("A"), maxLineTables),
	}
	ended := make(chan []string)
	go func() { ended <- tables.find([]uint64{0x10, 0x11}, func(uint64) bool { return true }) }()
	select {
	case got := <-ended:
		if !strings.HasSuffix(got[0], ":2") || len(got[0]) > 2*maxFileName {
			t.Errorf("%.100q", got)
		}
	case <-time.After(time.Minute): // it took hours
		t.Error("the table is still being read")
	}
}

func fixed32(n int) []byte { return []byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)} }

// All guests of the project are valid, and so is what is made of them.
func TestGuestsAreValid(t *testing.T) {
	var paths []string
	for _, pattern := range []string{
		"../../../guests/*.wasm", "../../../guests/*/*.wasm", "../../../build/*/*.wasm", "../testdata/*.wasm",
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	if len(paths) < 10 {
		t.Fatalf("only %q were found", paths)
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || info.Size() > 1<<20 && testing.Short() {
			continue
		}
		decoded, err := Decode(read(t, path))
		if err == nil {
			err = decoded.Validate()
		}
		if err != nil {
			if filepath.Base(path) != "cheat.wasm" { // uses a global that the host adds
				t.Errorf("%s: %v", path, err)
			}
			continue
		}
		rewrittenIsValid(t, path, decoded)
	}
}
