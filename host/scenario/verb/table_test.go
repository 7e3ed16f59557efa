package verb

import (
	"slices"
	"strings"
	"testing"
	"time"

	"rdmarun/host/scenario/explain"
	"rdmarun/rdmacore"
)

// TestRows: every row of the table has what the checker, the runner and the documentation rely on.
func TestRows(t *testing.T) {
	table := NewTable()
	if len(table.Verbs()) < 20 {
		t.Fatalf("%d verbs", len(table.Verbs()))
	}
	for _, v := range table.Verbs() {
		t.Run(v.Name, func(t *testing.T) {
			if v.Doc == "" || !strings.HasSuffix(v.Doc, ".") || v.Run == nil || table.Lookup(v.Name) != v {
				t.Error("needs a sentence, a function and a place in the table")
			}
			if v.Waits != (v.Argument("within") >= 0) {
				t.Error("who waits takes `within`")
			}
			if v.Scalar != "" && v.Argument(v.Scalar) < 0 {
				t.Errorf("no argument %q", v.Scalar)
			}
			if !v.Named && v.Manual == "" && len(v.Results) > 0 {
				t.Error("results that no step can have")
			}
			if v.Argument("private_data") >= 0 != (v.PrivateData != nil) {
				t.Error("its message carries private data, and it has no limits of them, or the reverse")
			}
			local := v.Name == "post_local_inv" || strings.Contains(v.Name, "_recv")
			if posts := strings.HasPrefix(v.Name, "post_"); v.Sends != (posts && !local) || v.Outstanding && !v.Sends {
				t.Errorf("posts a request for the peer: %t, one of few: %t", v.Sends, v.Outstanding)
			}
			seen := make(map[string]bool)
			for i := range v.Arguments {
				testArgument(t, &v.Arguments[i], seen)
			}
			for _, result := range v.Results {
				if result.Doc == "" || (result.Type == Word) != (len(result.Words) > 0) {
					t.Errorf("result %s: documentation, words", result.Name)
				}
			}
		})
	}
}

func testArgument(t *testing.T, a *Argument, seen map[string]bool) {
	if a.Doc == "" || seen[a.Name] {
		t.Errorf("argument %s: documentation, or twice", a.Name)
	}
	seen[a.Name] = true
	if (a.Type == Word || a.Type == Words) != (len(a.Words) > 0) {
		t.Errorf("argument %s: words", a.Name)
	}
	if a.Required && a.Default != nil {
		t.Errorf("argument %s: a required one has no default", a.Name)
	}
	if a.Default == nil {
		return
	}
	ok := false
	switch a.Type {
	case Integer, Size, Status:
		_, ok = a.Default.(int)
	case Unsigned:
		_, ok = a.Default.(uint64)
	case Duration:
		_, ok = a.Default.(time.Duration)
	case Boolean:
		_, ok = a.Default.(bool)
	case Word, Text, Endpoint, Peer, Address:
		_, ok = a.Default.(string)
	}
	if !ok {
		t.Errorf("argument %s: a default of type %T", a.Name, a.Default)
	}
}

func TestTypeNames(t *testing.T) {
	for kind := Integer; kind <= Status; kind++ {
		if kind.String() == "a value" {
			t.Errorf("type %d has no name", kind)
		}
	}
}

// TestExplained: each status is explained.
func TestExplained(t *testing.T) {
	for _, name := range namesOf(rdmacore.ParseWCStatus) {
		if explain.Completion(name) == "" {
			t.Errorf("completion status %s has no explanation", name)
		}
	}
	for _, name := range []string{
		"EINVAL", "EADDRINUSE", "EADDRNOTAVAIL", "ENODEV", "ENOMEM", "ECONNREFUSED", "ETIMEDOUT", "EACCES", "EBUSY",
		"EOPNOTSUPP",
	} {
		if explain.Errno(name) == "" {
			t.Errorf("errno %s has no explanation", name)
		}
	}
	for topic, names := range map[string][]string{
		"state": namesOf(rdmacore.ParseQPState), "qp_type": namesOf(rdmacore.ParseQPType), "access": AccessNames(),
		"port_space": namesOf(rdmacore.ParsePortSpace),
		"async":      namesOf(rdmacore.ParseAsyncEventType), "opcode": namesOf(rdmacore.ParseWCOpcode),
	} {
		for _, name := range names {
			for _, each := range explain.Topics() {
				if _, found := each.Find(name); each.Name == topic && !found {
					t.Errorf("%s of %s has no explanation", name, topic)
				}
			}
		}
	}
	for reason, word := range map[int]string{8: "listens", 28: "refused", 10: "connection"} {
		if text := explain.Event("REJECTED", reason); !strings.Contains(text, word) {
			t.Errorf("reject %d: %s", reason, text)
		}
	}
	if text := explain.Event("UNREACHABLE", -110); !strings.Contains(text, "no answer in time") {
		t.Error(text)
	}
}

func TestNames(t *testing.T) {
	for kind, names := range map[string][]string{
		"events": namesOf(rdmacore.ParseEventType), "statuses": namesOf(rdmacore.ParseWCStatus),
		"opcodes": namesOf(rdmacore.ParseWCOpcode), "states": namesOf(rdmacore.ParseQPState),
		"access": AccessNames(), "types": namesOf(rdmacore.ParseQPType), "errnos": ErrnoNames(),
		"rejects": RejectReasons(),
	} {
		if len(names) < 5 {
			t.Errorf("%s: %v", kind, names)
		}
	}
	if errno, ok := ParseErrno("EINVAL"); !ok || ErrnoName(errno) != "EINVAL" {
		t.Error("EINVAL")
	}
	for _, name := range []string{"EOPNOTSUPP", "ENOTSUP"} {
		if errno, ok := ParseErrno(name); !ok || ErrnoName(errno) != "EOPNOTSUPP" || ErrnoAlias(errno) != "ENOTSUP" {
			t.Errorf("%s is %d", name, errno)
		}
	}
	if _, ok := ParseErrno("ENONSENSE"); ok {
		t.Error("ENONSENSE")
	}
}

// TestObjectRows: who makes what a row of objects is, and who takes it.
func TestObjectRows(t *testing.T) {
	table := NewTable()
	for _, object := range objects {
		t.Run(object.What, func(t *testing.T) {
			if maker := table.Lookup(object.Maker); maker == nil || maker.Makes != object || !maker.Named {
				t.Errorf("%s does not make one", object.Maker)
			}
			if object.Type.String() != article(object.What) || ObjectOf(object.Type) != object {
				t.Errorf("type %q has another row", object.Type)
			}
			takes := slices.ContainsFunc(table.Verbs(), func(v *Verb) bool {
				return slices.ContainsFunc(v.Arguments, func(a Argument) bool { return a.Type == object.Type })
			})
			if !takes {
				t.Error("no verb takes one")
			}
		})
	}
}
