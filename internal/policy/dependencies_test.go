package policy

import (
	"encoding/json"
	"os/exec"
	"testing"
)

// allowedModules are the direct dependencies, each with what it is for.  A new one is a decision:
// write it down here.
var allowedModules = map[string]string{
	"github.com/expr-lang/expr":                "expressions in scenarios",
	"github.com/HdrHistogram/hdrhistogram-go":  "percentiles of what is measured",
	"github.com/rogpeppe/go-internal":          "testscript, tests of the command line",
	"github.com/spf13/cobra":                   "the command line",
	"github.com/spf13/pflag":                   "the flags of cobra",
	"github.com/tetratelabs/wazero":            "the WebAssembly runtime",
	"github.com/jstemmer/go-junit-report/v2":   "the types of JUnit's XML",
	"github.com/prometheus/client_golang":      "metrics of a run",
	"github.com/prometheus/client_model":       "the form in which metrics leave their registry",
	"github.com/prometheus/common":             "their text format",
	"gonum.org/v1/plot":                        "charts of the HTML report",
	"github.com/santhosh-tekuri/jsonschema/v6": "tests that hold the JSON Schema and the checker together",
	"go.uber.org/goleak":                       "tests that no goroutine is left behind",
	"pgregory.net/rapid":                       "random calls of the connection manager (tests only)",
	"golang.org/x/sys":                         "system calls",
	"golang.org/x/term":                        "is it a terminal, and how wide",
	"gopkg.in/yaml.v3":                         "YAML of scenarios",
}

func TestDirectDependenciesAreAllowed(t *testing.T) {
	command := exec.Command("go", "mod", "edit", "-json")
	command.Dir = root
	output, err := command.Output()
	if err != nil {
		t.Fatalf("go mod edit -json: %v", err)
	}
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
		Replace []struct{ Old struct{ Path string } }
	}
	if err := json.Unmarshal(output, &mod); err != nil {
		t.Fatal(err)
	}
	for _, require := range mod.Require {
		if _, ok := allowedModules[require.Path]; !ok && !require.Indirect {
			t.Errorf("go.mod requires %s, which is not among the allowed modules", require.Path)
		}
	}
	for _, replace := range mod.Replace {
		t.Errorf("go.mod replaces %s: the module would not install with go install", replace.Old.Path)
	}
}
