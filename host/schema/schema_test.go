package schema

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"rdmarun/host/scenario"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/example"
	"rdmarun/host/scenario/syntax"
	"rdmarun/internal/corpus"
)

// kept is the schema that the binary embeds.
func kept(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("../../schema/scenario.v1.json")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	return compileSchema(t, kept(t))
}

func compileSchema(t *testing.T, text []byte) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("scenario.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("scenario.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// TestUpToDate finds a language that changed without its schema.
func TestUpToDate(t *testing.T) {
	text, err := Scenario()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, kept(t)) {
		t.Error("schema/scenario.v1.json is not what the language is now; run: go generate ./host/schema")
	}
}

// TestNeverStricter takes every file that the checker finds good, wherever it is, through the schema.
func TestNeverStricter(t *testing.T) {
	schema := compiled(t)
	good := 0
	for _, pattern := range []string{"../../scenarios", "../scenario/testdata", "../../cmd/rdmarun/templates"} {
		err := filepath.WalkDir(pattern, func(path string, entry os.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".yaml" {
				return err
			}
			checked := scenario.Check([]string{path}, scenario.Params{})
			value, readable := decode(path)
			if checked.Errors.Len() > 0 || !readable {
				return nil
			}
			good++
			if err := schema.Validate(value); err != nil {
				t.Errorf("the checker takes %s, the schema does not: %v", path, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	files := corpus.Open(t, "../scenario/testdata/warn")
	for _, each := range files.Cases {
		checked, err := scenario.CheckIn(t.Context(), files.Locate, []string{each.Path}, scenario.Params{})
		value, readable := decodeText(each.Path, each.Text)
		if err != nil || checked.Errors.Len() > 0 || !readable {
			t.Errorf("%s is not good (%v)", each.Path, err)
		} else if err := schema.Validate(value); err != nil {
			t.Errorf("the checker takes %s, the schema does not: %v", each.Path, err)
		}
	}
	if good < 10 {
		t.Errorf("only %d good files were found", good)
	}
}

// TestExamplesFit takes the examples of words and the right ones of codes through the schema.
func TestExamplesFit(t *testing.T) {
	schema := compiled(t)
	fits := func(name, text string) {
		if value, readable := decodeText(name, []byte(text)); !readable {
			t.Errorf("%s cannot be read", name)
		} else if err := schema.Validate(value); err != nil {
			t.Errorf("the schema does not take %s: %v", name, err)
		}
	}
	for _, each := range example.All() {
		fits(each.File+"/"+each.Title, each.Text)
	}
	for _, code := range example.Codes() {
		_, right := example.OfCode(code)
		fits(code, right[example.Checked])
	}
}

// beyondSchemas are codes of shape that no schema can say.
var beyondSchemas = map[string]string{
	diag.TooManySteps.Number(): "it counts what fragments expand to",
	diag.TooManyCases.Number(): "it multiplies the lengths of lists",
}

// TestRefusesWrongShapes wants of the schema what it can say: each wrong example of a code of the shape is refused.
func TestRefusesWrongShapes(t *testing.T) {
	schema := compiled(t)
	refused := 0
	for code := range diag.Titles() {
		if code != diag.NotScenario.Number() && code != diag.Version.Number() && !strings.HasPrefix(code, "E01") {
			continue
		}
		wrong, _ := example.OfCode(code)
		value, readable := decodeText(code, []byte(wrong[example.Checked]))
		if !readable {
			t.Errorf("the wrong example of %s cannot be read", code)
			continue
		}
		err := schema.Validate(value)
		switch {
		case err == nil && beyondSchemas[code] == "":
			t.Errorf("the schema takes the wrong example of %s:\n%s", code, wrong[example.Checked])
		case err != nil && beyondSchemas[code] != "":
			t.Errorf("the schema refuses the wrong example of %s, and it is said that it cannot", code)
		case err != nil:
			refused++
		}
	}
	if refused < 14 {
		t.Errorf("only %d codes were tried", refused)
	}
}

// TestKnowsTheLanguage has mistakes that only a schema with the words of that part finds, each with what is right.
func TestKnowsTheLanguage(t *testing.T) {
	schema := compiled(t)
	const steps = "steps: [{log: a}]\n"
	const roles = "roles: {client: {buffers: {tx: {size: 64}}}}\n"
	for name, each := range map[string]struct{ wrong, right string }{
		"matrix without a list": {"matrix: {n: 1}\n" + steps, "matrix: {n: [1]}\n" + steps},
		"exclude": {
			"matrix: {n: [1, 2], exclude: {n: 1}}\n" + steps, "matrix: {n: [1, 2], exclude: [{n: 1}]}\n" + steps,
		},
		"threshold without pass": {
			"thresholds: [{metric: duration}]\n" + steps,
			"thresholds: [{metric: duration, pass: [max < 1s]}]\n" + steps,
		},
		"abort_on_fail": {
			"thresholds: [{metric: duration, pass: [max < 1s], abort_on_fail: {afer: 2s}}]\n" + steps,
			"thresholds: [{metric: duration, pass: [max < 1s], abort_on_fail: {after: 2s}}]\n" + steps,
		},
		"clock": {
			"provider: {soft: {clock: virtuel}}\n" + steps, "provider: {soft: {clock: virtual}}\n" + steps,
		},
		"provider": {"provider: {sotf: {}}\n" + steps, "provider: {soft: {seed: 1}}\n" + steps},
		"imports":  {"imports: [a.yaml]\n" + steps, "imports: {a: a.yaml}\n" + steps},
		"requires": {"requires: transport.ib\n" + steps, "requires: [transport.ib]\n" + steps},
		"status of a completion": {
			roles + "steps: [{role: client, poll: {cq: send}, expect: {status: RNR_RETRY}}]\n",
			roles + "steps: [{role: client, poll: {cq: send}, expect: {status: RNR_RETRY_EXC_ERR}}]\n",
		},
		"status in a list": {
			roles + "steps: [{role: client, poll: {cq: send}, expect: {status: {any_of: [SUCESS]}}}]\n",
			roles + "steps: [{role: client, poll: {cq: send}, expect: {status: {any_of: [SUCCESS, WR_FLUSH_ERR]}}}]\n",
		},
		"status of an event": {
			roles + "steps: [{role: client, wait_event: {ep: ep, type: REJECTED}, expect: {status: NOTHING}}]\n",
			roles + "steps: [{role: client, wait_event: {ep: ep, type: REJECTED}, expect: {status: " +
				"CONSUMER_DEFINED}}]\n",
		},
		"errno": {
			roles + "steps: [{role: client, query_device: {}, expect: {errno: EINVALID}}]\n",
			roles + "steps: [{role: client, query_device: {}, expect: {errno: EINVAL}}]\n",
		},
		"field of a result": {
			roles + "steps: [{role: client, query_device: {}, expect: {max_sges: 1}}]\n",
			roles + "steps: [{role: client, query_device: {}, expect: {max_sge: 1}}]\n",
		},
		"required argument": {
			roles + "steps: [{role: client, post_send: {ep: ep}}]\n",
			roles + "steps: [{role: client, post_send: {ep: ep, buffer: tx}}]\n",
		},
		"required in a block": {
			roles + "steps: [{do: [{role: client, post_send: {ep: ep}}]}]\n",
			roles + "defaults: {post_send: {buffer: tx}}\nsteps: [{do: [{role: client, post_send: {ep: ep}}]}]\n",
		},
		"one of a group": {
			roles + "steps: [{role: client, check: {buffer: tx}}]\n",
			roles + "steps: [{role: client, check: {buffer: tx, all: 0}}]\n",
		},
		"two of a group": {
			roles + "steps: [{role: client, check: {buffer: tx, all: 0, equals: tx}}]\n",
			roles + "steps: [{role: client, check: {buffer: tx, equals: tx}}]\n",
		},
		"barrier for nobody": {"steps: [{barrier: up}]\n", "steps: [{barrier: up, of: [client]}]\n"},
		"call without function": {
			"steps: [{role: g, guest: call}]\n", "steps: [{role: g, guest: call, function: add}]\n",
		},
		"as on a block": {
			"steps: [{as: a, do: [{log: a}]}]\n", "steps: [{as: a, repeat: 2, do: [{log: a}]}]\n",
		},
		"two loops": {
			"steps: [{repeat: 2, for_each: {n: [1]}, log: a}]\n", "steps: [{for_each: {n: [1]}, log: a}]\n",
		},
		"xfail without reason": {
			"cases: [{name: a, xfail: {}, " + steps[:len(steps)-1] + "}]\n",
			"cases: [{name: a, xfail: {reason: b}, " + steps[:len(steps)-1] + "}]\n",
		},
		"guest with buffers": {
			"roles: {g: {guest: {module: a.wasm}, buffers: {a: {size: 1}}}}\n" + steps,
			"roles: {g: {guest: {module: a.wasm}}}\n" + steps,
		},
		"times without its repeat": {
			roles + "steps: [{role: client, fill: {buffer: tx, times: 3}}]\n",
			roles + "steps: [{role: client, fill: {buffer: tx, repeat: 1, times: 3}}]\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for text, good := range map[string]bool{each.wrong: false, each.right: true} {
				value, readable := decodeText(name, []byte("rdmarun: v1\n"+text))
				if err := schema.Validate(value); !readable || (err == nil) != good {
					t.Errorf("readable %v, %v:\n%s", readable, err, text)
				}
			}
		})
	}
}

// TestCatches counts what the schema finds in the bad files, all of which the checker refuses: it must be of use.
func TestCatches(t *testing.T) {
	schema := compiled(t)
	files := corpus.Open(t, "../scenario/testdata/bad")
	caught := 0
	for _, each := range files.Cases {
		checked, err := scenario.CheckIn(t.Context(), files.Locate, []string{each.Path}, scenario.Params{})
		if err != nil || checked.Errors.Len() == 0 {
			t.Errorf("%s passes the checker (%v)", each.Path, err)
		}
		if value, readable := decodeText(each.Path, each.Text); readable && schema.Validate(value) != nil {
			caught++
		}
	}
	t.Logf("the schema refuses %d of %d bad files", caught, len(files.Cases))
	if caught < len(files.Cases)/3 { // most of the corpus is names, units and expressions
		t.Errorf("the schema refuses only %d of %d bad files", caught, len(files.Cases))
	}
}

// decode reads a YAML file as an editor's language server does; files that are no YAML are not readable.
func decode(path string) (value any, readable bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, false
	}
	return decodeText(path, text)
}

func decodeText(path string, text []byte) (value any, readable bool) {
	errors := &diag.List{}
	root := syntax.Parse(diag.NewSource(path, text), errors)
	if root == nil || errors.Len() > 0 {
		return nil, false
	}
	return convert(root), true
}

func convert(node *syntax.Node) any {
	switch node.Kind {
	case syntax.Mapping:
		object := make(map[string]any)
		for _, pair := range node.Pairs {
			object[pair.Key.Value] = convert(pair.Value)
		}
		return object
	case syntax.Sequence:
		list := make([]any, len(node.Items))
		for i, item := range node.Items {
			list[i] = convert(item)
		}
		return list
	}
	return scalarValue(node)
}

// scalarValue is the core schema of YAML 1.2.
func scalarValue(node *syntax.Node) any {
	text := node.Value
	switch {
	case node.IsNull():
		return nil
	case node.Style != syntax.Plain:
		return text
	case text == "true" || text == "false":
		return text == "true"
	}
	if n, err := strconv.ParseUint(text, 0, 64); err == nil && !strings.Contains(text, "_") {
		return json.Number(strconv.FormatUint(n, 10))
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return json.Number(text)
	}
	return text
}
