package schema

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"rdmarun/host/scenario"
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
	return compile(t, kept(t))
}

func compile(t *testing.T, text []byte) *jsonschema.Schema {
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
	if good < 10 {
		t.Errorf("only %d good files were found", good)
	}
}

// TestCatches counts what the schema finds in the bad files, all of which the checker refuses: it must be
// of use.
func TestCatches(t *testing.T) {
	schema := compiled(t)
	files, err := filepath.Glob("../scenario/testdata/bad/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	caught := 0
	for _, path := range files {
		if scenario.Check([]string{path}, scenario.Params{}).Errors.Len() == 0 {
			t.Errorf("%s passes the checker", path)
		}
		if value, readable := decode(path); readable && schema.Validate(value) != nil {
			caught++
		}
	}
	t.Logf("the schema refuses %d of %d bad files", caught, len(files))
	if caught < 30 { // most of the corpus is names, units and expressions
		t.Errorf("the schema refuses only %d of %d bad files", caught, len(files))
	}
}
