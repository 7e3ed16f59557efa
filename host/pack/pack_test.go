package pack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func packed(t *testing.T) []byte {
	t.Helper()
	from := t.TempDir()
	scenarios := []string{write(t, from+"/scenarios/b.yaml", "b"), write(t, from+"/scenarios/a.yaml", "a")}
	others := []string{write(t, from+"/guests/g.wasm", "guest"), scenarios[0]}
	var archive, again bytes.Buffer
	manifest, err := Write(&archive, scenarios, others)
	if err != nil || len(manifest.Files) != 3 {
		t.Fatal(manifest, err)
	}
	if _, err := Write(&again, scenarios, others); err != nil || !bytes.Equal(archive.Bytes(), again.Bytes()) {
		t.Error("the same files make another pack", err)
	}
	return archive.Bytes()
}

func TestRoundTrip(t *testing.T) {
	to := t.TempDir()
	scenarios, err := Extract(bytes.NewReader(packed(t)), to)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{to + "/scenarios/b.yaml", to + "/scenarios/a.yaml"}; !slices.Equal(scenarios, want) {
		t.Error(scenarios)
	}
	for path, want := range map[string]string{"scenarios/a.yaml": "a", "guests/g.wasm": "guest"} {
		if text, err := os.ReadFile(filepath.Join(to, path)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
}

// archive makes archives that Write would not make.
func archive(t *testing.T, entries ...string) []byte {
	t.Helper()
	var text bytes.Buffer
	compressed := gzip.NewWriter(&text)
	a := tar.NewWriter(compressed)
	for i := 0; i < len(entries); i += 2 {
		if err := a.WriteHeader(&tar.Header{
			Name: entries[i], Mode: 0o644, Size: int64(len(entries[i+1])),
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Write([]byte(entries[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if a.Close() != nil || compressed.Close() != nil {
		t.Fatal("close")
	}
	return text.Bytes()
}

func TestRefused(t *testing.T) {
	const (
		sumOfA = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
		head   = `{"version":1,"scenarios":["a"],"files":[{"path":"a","size":1,"sha256":"` + sumOfA + `"}]}`
	)
	good := packed(t)
	tests := map[string]struct {
		pack []byte
		want string
	}{
		"no archive":    {[]byte("rdmarun: v1"), "not a pack"},
		"no manifest":   {archive(t, "a", "a"), "does not begin with manifest.json"},
		"bad manifest":  {archive(t, manifestName, "{"), "manifest.json"},
		"other version": {archive(t, manifestName, `{"version":9}`), "version 9"},
		"no scenario":   {archive(t, manifestName, `{"version":1}`), "no scenario"},
		"too much": {
			archive(t, manifestName, `{"version":1,"scenarios":["a"],"files":[{"path":"a","size":9999999999}]}`),
			"more than",
		},
		"negative": {
			archive(t, manifestName, `{"version":1,"scenarios":["a"],"files":[{"path":"a","size":-1}]}`), "more than",
		},
		"changed":    {archive(t, manifestName, head, "a", "b"), "hash differs"},
		"other file": {archive(t, manifestName, head, "b", "a"), "differs from the manifest"},
		"missing":    {archive(t, manifestName, head), "ends early"},
		"surplus":    {archive(t, manifestName, head, "a", "a", "b", "b"), "more files than"},
		"leads out": {
			archive(t, manifestName, strings.ReplaceAll(head, `"path":"a"`, `"path":"../a"`), "../a", "a"), "leads out",
		},
		"scenario outside": {
			archive(t, manifestName, strings.ReplaceAll(head, `["a"]`, `["/etc/passwd"]`), "a", "a"), "leads out",
		},
		"cut off": {good[:len(good)/2], ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scenarios, err := Extract(bytes.NewReader(test.pack), t.TempDir())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, %v; expected %q", scenarios, err, test.want)
			}
		})
	}
}
