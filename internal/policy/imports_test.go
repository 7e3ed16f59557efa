package policy

import (
	"strings"
	"testing"
)

// arrows says which of the project's packages a package may import in addition to its own sub-packages. They are the
// picture in the architecture, where every arrow points down. The longest matching folder counts.
var arrows = []struct {
	folder string
	may    []string
}{
	{"rdmacore", nil},
	{"hostfuncs", []string{"rdmacore"}},
	{"host", []string{"hostfuncs", "rdmacore"}},
	{"host/printable", nil},
	{"host/bounded", nil},
	{"host/ownfile", nil},
	{"host/check/finding", nil},
	{"host/pcapng", nil},
	{"host/sandbox", nil},
	{"host/unixsocket", nil},
	{"host/bus", []string{"host/printable"}},
	{"host/guest", []string{"host/bounded", "host/printable", "host/sandbox", "hostfuncs", "rdmacore"}},
	{"host/program", []string{"host/pcapng", "host/printable", "host/unixsocket", "rdmacore"}},
	{"host/record", []string{"host/bounded"}},
	{"host/replay", []string{"host/printable", "host/trace"}},
	{
		"host/scenario",
		[]string{
			"host/bounded", "host/bus", "host/check/finding", "host/guest", "host/printable", "host/program",
			"host/record", "host/trace", "rdmacore",
		},
	},
	{
		"host/scenario/expect",
		[]string{"host/scenario/compile", "host/scenario/explain", "host/scenario/expression",
			"host/scenario/testbed", "host/scenario/verb", "rdmacore"},
	},
	{
		"host/scenario/peer",
		[]string{
			"host/guest", "host/printable", "host/record", "host/scenario/meeting", "host/scenario/progress",
			"host/scenario/testbed", "host/scenario/verb",
		},
	},
	{"host/scenario/progress", nil},
	{"host/scenario/shell", nil},
	{
		"host/scenario/skip",
		[]string{
			"host/scenario/compile", "host/scenario/environment", "host/scenario/expression", "host/scenario/testbed",
			"host/scenario/verb", "rdmacore",
		},
	},
	{
		"host/scenario/threshold",
		[]string{
			"host/record", "host/scenario/compile", "host/scenario/expression", "host/scenario/quantity",
			"host/scenario/verb",
		},
	},
	{
		"host/scenario/timeline",
		[]string{
			"host/record", "host/scenario/compile", "host/scenario/testbed", "host/scenario/verb", "rdmacore",
		},
	},
	{
		"host/lab",
		[]string{
			"host/bounded", "host/bus", "host/doctor", "host/ownfile", "host/pack", "host/pcapng", "host/printable",
			"host/record", "host/scenario", "rdmacore",
		},
	},
	{
		"host/output",
		[]string{
			"host/ownfile", "host/printable", "host/record", "host/scenario/diag", "host/scenario/quantity",
			"host/scenario/standard",
		},
	},
	{"host/compare", []string{"host/record", "host/output"}},
	{"host/conformance", []string{"host/record", "host/scenario", "host/output"}},
	{"cmd", []string{"host", "hostfuncs", "rdmacore", "schema", "sdk"}},
	{"guests", []string{"sdk"}},
	{"sdk", nil},
	{"internal", nil},
	{"schema", nil},
	{"internal/bench", []string{"host", "internal/netns", "rdmacore"}},
	{"tools", nil},
}

func TestArrowsPointDown(t *testing.T) {
	for _, file := range goFiles(t) {
		folder, may := arrowsOf(file.directory())
		if folder == "" {
			t.Errorf("%s: %q is no component; add it to the arrows", file.path, file.directory())
			continue
		}
		for path, position := range file.imports() {
			ours, isOurs := strings.CutPrefix(path, module+"/")
			if !isOurs || within(ours, folder) || anyWithin(ours, may) {
				continue
			}
			// Test helpers and the SDK's text do not depend on packages of the host, so the tests of any
			// package may use them. Tests of the host look at whole runs as their users see them.
			if file.isTest() &&
				(within(ours, "internal") || ours == "sdk" || within(folder, "host") && within(ours, "host")) {
				continue
			}
			t.Errorf("%v: %s must not import %s", position, folder, ours)
		}
	}
}

// onlyIn are imports that some folders keep to themselves.
var onlyIn = []struct {
	path    string
	folders []string
	why     string
}{
	{"C", []string{"rdmacore"}, "the only cgo of the project is there"},
	{"gopkg.in/yaml.v3", []string{"host/scenario"}, "a change of the YAML package must be a change of one import"},
	{"github.com/tetratelabs/wazero", []string{"host/guest", "hostfuncs"}, "nothing else knows how guests are run"},
	{"github.com/elastic/go-seccomp-bpf", []string{"host/sandbox"}, "system calls are filtered in one way"},
	{"github.com/nats-io", []string{"host/bus"}, "nothing else knows what carries messages"},
	{"github.com/spf13/cobra", []string{"cmd"}, "a library does not read command lines"},
}

func TestImportsThatStayInOneComponent(t *testing.T) {
	for _, file := range goFiles(t) {
		for path, position := range file.imports() {
			for _, rule := range onlyIn {
				if within(path, rule.path) && !anyWithin(file.directory(), rule.folders) {
					t.Errorf("%v: only %v imports %q: %s", position, rule.folders, rule.path, rule.why)
				}
			}
		}
	}
}

func TestYAMLIsImportedByOnePackage(t *testing.T) {
	users := map[string]bool{}
	for _, file := range goFiles(t) {
		if _, imports := file.imports()["gopkg.in/yaml.v3"]; imports {
			users[file.directory()] = true
		}
	}
	if len(users) > 1 {
		t.Errorf(
			"the YAML package is imported by %d packages, %v; one of them should serve the others", len(users), users,
		)
	}
}

func arrowsOf(directory string) (folder string, may []string) {
	for _, row := range arrows {
		if within(directory, row.folder) && len(row.folder) > len(folder) {
			folder, may = row.folder, row.may
		}
	}
	return folder, may
}

// within reports whether path is folder or something under it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

func anyWithin(path string, folders []string) bool {
	for _, folder := range folders {
		if within(path, folder) {
			return true
		}
	}
	return false
}
