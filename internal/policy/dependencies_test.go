package policy

import (
	"encoding/json"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// testsOnly ends the reason of a module that the program does not contain.
const testsOnly = "(tests only)"

var dependencyRow = regexp.MustCompile(`(?m)^\| ([\w./, -]+) \| (.+) \|$`)

// dependencies is the decision with the reason of each module.
const dependencies = "docs/decisions/0084-dependencies.md"

// dependencyTable is the table of that decision: the reason of each module.
func dependencyTable(t *testing.T) map[string]string {
	t.Helper()
	_, section, found := strings.Cut(string(readSource(t, dependencies)), "\n## Decision\n")
	if !found {
		t.Fatalf("%s has no section Decision", dependencies)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	reasons := map[string]string{}
	for _, row := range dependencyRow.FindAllStringSubmatch(section, -1) {
		for _, path := range strings.Split(row[1], ", ") {
			if strings.Contains(path, "/") || strings.Contains(path, ".") {
				reasons[path] = row[2]
			}
		}
	}
	return reasons
}

// directModules are the modules that go.mod requires for the project's own packages, and the tools that it builds.
func directModules(t *testing.T) (modules, tools []string) {
	t.Helper()
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
		Tool    []struct{ Path string }
	}
	if err := json.Unmarshal(output, &mod); err != nil {
		t.Fatal(err)
	}
	for _, replace := range mod.Replace {
		t.Errorf("go.mod replaces %s: the module would not install with go install", replace.Old.Path)
	}
	for _, require := range mod.Require {
		if !require.Indirect {
			modules = append(modules, require.Path)
		}
	}
	for _, tool := range mod.Tool {
		tools = append(tools, tool.Path)
	}
	return modules, tools
}

// A new dependency is a decision with a reason; a removed one leaves no row behind.
func TestDirectDependenciesHaveTheirReasons(t *testing.T) {
	reasons := dependencyTable(t)
	modules, tools := directModules(t)
	if len(modules) < 5 {
		t.Fatalf("go.mod requires only %v", modules)
	}
	used := append(modules, tools...)
	for _, path := range used {
		if reasons[path] == "" {
			t.Errorf("go.mod requires %s, which has no row in the table of %s", path, dependencies)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(reasons)) {
		if !slices.Contains(used, path) {
			t.Errorf("%s has a row for %s, which go.mod does not require", dependencies, path)
		}
	}
}

// A module that the table calls one of tests is not in the program, and every other is.
func TestDependenciesOfTestsAreTheirsAlone(t *testing.T) {
	imported, shipped := map[string]bool{}, map[string]string{}
	reasons := dependencyTable(t)
	_, tools := directModules(t)
	for _, tool := range tools {
		delete(reasons, tool) // nothing imports it
	}
	for _, file := range goFiles(t) {
		for path, position := range file.imports() {
			for module := range reasons {
				if !within(path, module) {
					continue
				}
				imported[module] = true
				if !file.isTest() && !within(file.path, "internal") {
					shipped[module] = position.String()
				}
			}
		}
	}
	for _, module := range slices.Sorted(maps.Keys(reasons)) {
		isForTests := strings.HasSuffix(reasons[module], testsOnly)
		switch {
		case !imported[module]:
			t.Errorf("nothing imports %s", module)
		case isForTests && shipped[module] != "":
			t.Errorf("%s: %s says that %s is for tests only", shipped[module], dependencies, module)
		case !isForTests && shipped[module] == "":
			t.Errorf("only tests import %s; add %q to its row in %s", module, testsOnly, dependencies)
		}
	}
}
