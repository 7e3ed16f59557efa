package model

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"rdmarun/hostfuncs"
)

// All that has a length says which parameter it is, and each handle is of a kind that there is.
func TestShapes(t *testing.T) {
	m := Of()
	kinds := m.Handles
	for _, f := range m.Functions {
		if strings.HasSuffix(f.Result.Doc, "handle") != (f.Result.Handle != "") {
			t.Errorf("%s returns %q, of kind %q", f.Name, f.Result.Doc, f.Result.Handle)
		}
		if f.Result.Handle != "" && !slices.Contains(kinds, f.Result.Handle) {
			t.Errorf("%s returns a handle of kind %q", f.Name, f.Result.Handle)
		}
		for _, p := range f.Params {
			switch {
			case p.Kind == Pointer && (p.Type == "bytes" || p.Type == "text") && p.Count == "" && p.Size == 0:
				t.Errorf("%s: how long is %s?", f.Name, p.Name)
			case p.Kind == Pointer && strings.Contains(p.Doc, "array") && p.Count == "":
				t.Errorf("%s: how many has the array %s?", f.Name, p.Name)
			case p.Kind == Pointer && p.Type != "bytes" && p.Type != "text" && p.Type != "u64" &&
				m.Struct(p.Type) == nil:
				t.Errorf("%s: %s points to %s, which is no struct", f.Name, p.Name, p.Type)
			case p.Enum != "" && m.Enum(p.Enum) == nil:
				t.Errorf("%s: %s is a %s, which is no enum", f.Name, p.Name, p.Enum)
			}
		}
		for _, e := range f.Errors {
			for _, name := range e.Names {
				if !slices.ContainsFunc(m.Enum("errno").Values, func(v Value) bool { return v.Name == name }) {
					t.Errorf("%s: no errno is called %s", f.Name, name)
				}
			}
		}
	}
}

func TestWhatFollows(t *testing.T) {
	m := Of()
	param := func(function, name string) Param {
		for _, f := range m.Functions {
			for _, p := range f.Params {
				if f.Name == function && p.Name == name {
					return p
				}
			}
		}
		t.Fatalf("no %s of %s", name, function)
		return Param{}
	}
	if p := param("post_send", "sges"); p.Count != "num_sges" || p.Optional {
		t.Errorf("%+v", p)
	}
	if p := param("wait_cq_timestamps", "wc"); p.Count != "max" {
		t.Errorf("%+v", p)
	}
	if p := param("create_ah_from_wc", "grh"); p.Size != 40 || p.Count != "" {
		t.Errorf("%+v", p)
	}
	if p := param("connect", "param"); !p.Optional || p.Count != "" {
		t.Errorf("%+v", p)
	}
	if p := param("wait_cq", "timeout_ns"); p.Unit != "ns" || p.Wasm != "i64" {
		t.Errorf("%+v", p)
	}
	if s := m.Struct("qp_init_attr"); s.Align != 4 || !s.Sized || s.Size != 48 {
		t.Errorf("%+v", s)
	}
	for _, f := range m.Functions {
		if f.Name == "create_ep" {
			if len(f.Errors) != 5 ||
				!slices.Equal(f.Errors[3].Names, []string{"ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH"}) ||
				f.Result.Handle != "ep" {
				t.Errorf("%+v", f)
			}
		}
	}
}

// What is printed can be read again, and says which ABI it is.
func TestJSON(t *testing.T) {
	text, err := Of().JSON()
	if err != nil {
		t.Fatal(err)
	}
	var back Model
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if len(back.Functions) != len(hostfuncs.Functions()) || back.Number != hostfuncs.Current.Number() ||
		back.Struct("wc").Size != 48 {
		t.Errorf("%d functions of %d, %s", len(back.Functions), len(hostfuncs.Functions()), back.Version)
	}
}

// Each function of the control plane is in the WIT once, braces match, and no other is.
func TestWIT(t *testing.T) {
	m := Of()
	text := m.WIT()
	if strings.Count(text, "{") != strings.Count(text, "}") {
		t.Error("braces do not match")
	}
	for _, f := range m.Functions {
		want := 1
		if f.Capability == dataPath {
			want = 0
		}
		if got := strings.Count(text, "\n  "+witName(f.Name)+": func("); got != want {
			t.Errorf("%s is %d times in the WIT, not %d", f.Name, got, want)
		}
	}
	for _, line := range strings.Split(text, "\n") {
		if strings.Contains(line, ": func(") && !strings.HasSuffix(line, "errno>;") {
			t.Errorf("no errno: %s", line)
		}
	}
}
