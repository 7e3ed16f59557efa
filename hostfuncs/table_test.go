package hostfuncs

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/tetratelabs/wazero/api"

	"rdmarun/rdmacore"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestFunctions(t *testing.T) {
	names := make(map[string]bool)
	structs := map[string]bool{"u64": true, "bytes": true, "text": true}
	for _, s := range Structs() {
		structs[s.Name] = true
	}
	enums := map[string]bool{"": true}
	for _, e := range Enums() {
		enums[e.Name] = true
	}
	for _, f := range Functions() {
		if names[f.Name] {
			t.Errorf("%s is there twice", f.Name)
		}
		names[f.Name] = true
		if !strings.HasSuffix(f.Doc, ".") || strings.HasSuffix(f.Result, ".") ||
			f.Errors != "" && !strings.HasSuffix(f.Errors, ".") {
			t.Errorf("%s: doc and errors are sentences, the result is none", f.Name)
		}
		if f.Capability.String() == "" || strings.Contains(f.Capability.String(), "|") {
			t.Errorf("%s belongs to %q, not to one capability", f.Name, f.Capability)
		}
		if f.Since.Number() > Current.Number() || f.Since.Number() == 0 {
			t.Errorf("%s is since %v, in ABI %v", f.Name, f.Since, Current)
		}
		var want []api.ValueType
		for _, p := range f.Params {
			want = append(want, onWire(p.Type))
			switch p.Type {
			case HandleOf:
				if !slices.Contains(handleKinds(), p.Of) {
					t.Errorf("%s: no handle is of kind %q", f.Name, p.Of)
				}
			case In, Out, InOut:
				if !structs[p.Of] {
					t.Errorf("%s: no struct is called %q", f.Name, p.Of)
				}
			case U32:
				if !enums[p.Of] {
					t.Errorf("%s: no enum is called %q", f.Name, p.Of)
				}
			}
		}
		if !slices.Equal(want, f.Signature()) {
			t.Errorf("%s: the parameters make %v, the implementation has %v", f.Name, want, f.Signature())
		}
		if f.Blocking && f.Name != "create_ep" && (len(want) == 0 || want[len(want)-1] != api.ValueTypeI64) {
			t.Errorf("%s waits, but its last parameter is no timeout", f.Name)
		}
	}
}

// onWire is a parameter's type on the wire.
func onWire(t ParamType) api.ValueType {
	if t == I64 {
		return api.ValueTypeI64
	}
	return api.ValueTypeI32
}

func handleKinds() (names []string) {
	for _, name := range kindNames {
		names = append(names, name)
	}
	return names
}

func TestStructs(t *testing.T) {
	for _, s := range Structs() {
		if err := checkStruct(s); err != nil {
			t.Error(err)
		}
	}
}

// sizeMultiple divides the size of every struct, so that in an array each lies as well as the first.
const sizeMultiple = 8

// checkStruct finds what a struct of the ABI must not have: padding that is not a field, or a size not divisible by 8.
func checkStruct(s Struct) error {
	at := uint32(0)
	for _, f := range s.Fields {
		switch {
		case f.Name == "":
			return fmt.Errorf("%s has a field without a name at %d", s.Name, f.Offset)
		case f.Offset != at:
			return fmt.Errorf("%s has padding before %s: %d to %d", s.Name, f.Name, at, f.Offset)
		}
		at += f.Size
	}
	if at != s.Size || s.Size%sizeMultiple != 0 {
		return fmt.Errorf("%s has fields of %d bytes and a size of %d", s.Name, at, s.Size)
	}
	return nil
}

// The core reads and writes these where they lie, so they are the core's to the byte.
func TestStructsOfTheDataPathAreTheCores(t *testing.T) {
	for name, pair := range map[string][2]Struct{
		"send_wr": {structOf[SendWR]("", ""), structOf[rdmacore.SendWR]("", "")},
		"recv_wr": {structOf[RecvWR]("", ""), structOf[rdmacore.RecvWR]("", "")},
		"sge":     {structOf[SGE]("", ""), structOf[rdmacore.SGE]("", "")},
		"wc":      {structOf[WC]("", ""), structOf[rdmacore.WC]("", "")},
		"stamp":   {structOf[Timestamp]("", ""), structOf[rdmacore.Timestamp]("", "")},
	} {
		ours, cores := pair[0], pair[1]
		if ours.Size != cores.Size {
			t.Errorf("%s has %d bytes, the core's has %d", name, ours.Size, cores.Size)
		}
		for at, field := range cores.Fields {
			if got := ours.Fields[at]; got.Offset != field.Offset || got.Size != field.Size ||
				got.GoName != field.GoName {
				t.Errorf("%s: %s is %d bytes at %d, the core has %s with %d at %d", name,
					got.GoName, got.Size, got.Offset, field.GoName, field.Size, field.Offset)
			}
		}
	}
	if size := unsafe.Sizeof(rdmacore.WC{}); size != 48 {
		t.Errorf("a completion has %d bytes, struct ibv_wc has 48", size)
	}
}

// What a guest may depend on never changes: a line once written here stays.
func TestABIIsOnlyAddedTo(t *testing.T) {
	const path = "testdata/abi.golden"
	now := Describe()
	if *update {
		if err := os.WriteFile(path, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(now, "\n")
	for _, line := range strings.Split(string(golden), "\n") {
		if !slices.Contains(lines, line) && !grown(line, lines) && !reused(line, lines) {
			t.Errorf("the ABI no longer has: %s", line)
		}
	}
	if string(golden) != now && !t.Failed() {
		t.Error("the ABI has grown: run go generate ./hostfuncs and go test ./hostfuncs -update")
	}
}

// grown reports whether a line is the size of a struct that is larger now.
func grown(line string, lines []string) bool {
	name, size, ok := structLine(line)
	return ok && slices.ContainsFunc(lines, func(each string) bool {
		other, now, ok := structLine(each)
		return ok && other == name && now > size
	})
}

// reused reports whether a line is a reserved field with bytes that have other names now; it begins with one of them.
func reused(line string, lines []string) bool {
	name, place, ok := strings.Cut(line, " at ")
	owner, _, isReserved := strings.Cut(name, ".reserved")
	return ok && isReserved && slices.ContainsFunc(lines, func(each string) bool {
		return strings.HasPrefix(each, owner+".") && strings.HasSuffix(each, " at "+place)
	})
}

func structLine(line string) (name string, size int, ok bool) {
	fields := strings.Fields(line)
	if len(fields) != 3 || fields[0] != "struct" {
		return "", 0, false
	}
	for _, digit := range fields[2] {
		size = size*10 + int(digit-'0')
	}
	return fields[1], size, true
}
