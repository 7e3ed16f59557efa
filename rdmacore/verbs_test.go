package rdmacore

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestVerbs: on a machine without libraries or devices there are sentences, not crashes; on one with a
// device it is listed.
func TestVerbs(t *testing.T) {
	p, err := Open("verbs")
	if err != nil {
		refused(t, err, syscall.ENOENT)
		if !strings.Contains(err.Error(), "librdmacm1") && !strings.Contains(err.Error(), "libibverbs1") {
			t.Errorf("no package to install: %v", err)
		}
		t.Skip(err)
	}
	defer func() { must(t, p.Close()) }()
	devices, err := p.Devices()
	must(t, err)
	if len(devices) != 0 {
		for _, device := range devices {
			_, err := device.Ports()
			must(t, err)
		}
		return
	}
	for range 2 {
		if _, err = p.DefaultDevice(); err == nil || !strings.Contains(err.Error(), "rdma link add") {
			t.Errorf("default device: %v", err)
		}
		if _, err = p.CreateEventChannel(); err == nil || !strings.Contains(err.Error(), "RDMA device") {
			t.Errorf("event channel: %v", err)
		}
	}
}

// TestVerbsLibraries opens verbs in a process of its own that finds other libraries first.
func TestVerbsLibraries(t *testing.T) {
	const variable = "RDMACORE_TEST_OPEN_VERBS"
	if os.Getenv(variable) != "" {
		_, err := Open("verbs")
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	softOnly(t, "libraries that are not there")
	for name, row := range map[string]struct {
		library string
		build   func(t *testing.T, path string)
		want    []string
	}{
		"no librdmacm":  {"librdmacm.so.1", nothing, []string{"no such file", "librdmacm.so.1", "librdmacm1"}},
		"no libibverbs": {"libibverbs.so.1", nothing, []string{"no such file", "libibverbs.so.1", "libibverbs1"}},
		"an empty librdmacm": {
			"librdmacm.so.1", empty, []string{"not implemented", "rdma_create_event_channel", "44"},
		},
		"an empty libibverbs": {"libibverbs.so.1", empty, []string{"not implemented", "ibv_query_device", "44"}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			// Both are replaced, so that the test needs neither on this machine.
			for _, library := range []string{"librdmacm.so.1", "libibverbs.so.1"} {
				if library != row.library {
					whole(t, filepath.Join(folder, library), library)
				}
			}
			row.build(t, filepath.Join(folder, row.library))
			command := exec.Command(os.Args[0], "-test.run=^TestVerbsLibraries$")
			command.Env = append(os.Environ(), variable+"=1", "LD_LIBRARY_PATH="+folder)
			output, err := command.CombinedOutput()
			if err == nil {
				t.Fatalf("opened without a library:\n%s", output)
			}
			for _, want := range row.want {
				if !strings.Contains(string(output), want) {
					t.Errorf("no %q in:\n%s", want, output)
				}
			}
		})
	}
}

// nothing is a file that is no library, which ends the loader's search.
func nothing(t *testing.T, path string) { must(t, os.WriteFile(path, nil, 0o644)) }

// empty is a library without functions.
func empty(t *testing.T, path string) { compile(t, path, "") }

// whole is a library with every function that verbs needs, none of which does anything.
func whole(t *testing.T, path, library string) {
	source, err := os.ReadFile("verbs/provider.c")
	must(t, err)
	prefix := map[string]string{"librdmacm.so.1": "rdma_", "libibverbs.so.1": "ibv_"}[library]
	var functions strings.Builder
	for _, word := range strings.FieldsFunc(string(source), func(r rune) bool { return r == '(' || r == ')' }) {
		if strings.HasPrefix(word, prefix) && !strings.ContainsAny(word, " \n\t;,") {
			functions.WriteString("void " + word + "(void) {}\n")
		}
	}
	compile(t, path, functions.String())
}

func compile(t *testing.T, path, source string) {
	t.Helper()
	command := exec.Command("cc", "-shared", "-fPIC", "-o", path, "-x", "c", "-")
	command.Stdin = strings.NewReader(source)
	if output, err := command.CombinedOutput(); err != nil {
		t.Skipf("no C compiler: %v: %s", err, output)
	}
}
