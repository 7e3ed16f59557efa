package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGeneratedFileIsUpToDate(t *testing.T) {
	const folder = "../../rdmacore"
	want, err := generate([]string{filepath.Join(folder, "names.go"), filepath.Join(folder, "names_completion.go")})
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(folder, output))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("rdmacore/%s is not what go generate ./rdmacore writes (%v)", output, err)
	}
}

func TestGenerate(t *testing.T) {
	const head = "package p\n\n// States.\n//\n//enum:names \"QP state\""
	for name, test := range map[string]struct{ source, want, wrong string }{
		"C names": {
			source: head + " IBV_QPS_\nconst (\n\tReset QPState = C.IBV_QPS_RESET\n\tErr QPState = C.IBV_QPS_ERR\n)\n",
			want:   "names[QPState]{\"QP state\", []named[QPState]{\n\t{Reset, \"RESET\"},\n\t{Err, \"ERR\"},\n}}",
		},
		"its own name": {
			source: head + "\nconst (\n\tReset QPState = 7 // NONE\n)\n",
			want:   "{Reset, \"NONE\"}",
		},
		"a bit set": {
			source: head + " IBV_ flags\nconst (\n\tReset QPState = C.IBV_RESET // an explanation\n)\n",
			want:   "return qpStateNames.parseFlags(text)",
		},
		"String only": {
			source: head + " IBV_ string-only\nconst (\n\tReset QPState = C.IBV_RESET\n)\n",
			want:   "return qpStateNames.name(q)",
		},
		"a number without a name": {
			source: head + "\nconst (\n\tReset QPState = 7\n)\n",
			wrong:  "p.go:6:1: Reset: a constant without a C name has its name in a comment on its line",
		},
		"another type": {
			source: head + " IBV_\nconst (\n\tReset QPState = C.IBV_A\n\tErr QPType = C.IBV_B\n)\n",
			wrong:  "Err: each constant of an enum has a line, the type and a value of its own",
		},
		"iota": {
			source: head + " IBV_\nconst (\n\tReset QPState = C.IBV_A\n\tErr\n)\n",
			wrong:  "Err: each constant",
		},
		"an unknown option": {
			source: head + " IBV_ Flags\nconst (\n\tReset QPState = C.IBV_A\n)\n",
			wrong:  `expected //enum:names "KIND" [PREFIX] [flags] [string-only]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "p.go")
			if err := os.WriteFile(path, []byte(test.source), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := generate([]string{path})
			switch {
			case test.wrong != "":
				if err == nil || !strings.Contains(err.Error(), test.wrong) {
					t.Errorf("the error is %v, not %s", err, test.wrong)
				}
			case err != nil || !strings.Contains(string(got), test.want):
				t.Errorf("%v; the output lacks %s:\n%s", err, test.want, got)
			case strings.Contains(test.source, "string-only") == strings.Contains(string(got), "func ParseQPState("):
				t.Errorf("ParseQPState:\n%s", got)
			}
		})
	}
}

func TestLowered(t *testing.T) {
	for name, want := range map[string]string{
		"QPType": "qpType", "Access": "access", "WCStatus": "wcStatus", "CMMessage": "cmMessage", "MW": "mw",
	} {
		if got := lowered(name); got != want {
			t.Errorf("%s: %s, not %s", name, got, want)
		}
	}
}
