package guest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rdmarun/host/guest"
	"rdmarun/rdmacore"
)

// TestCacheIsAHint damages what is kept of a guest in every way: it runs all the same, after one warning, and is
// kept anew where that can be.
func TestCacheIsAHint(t *testing.T) {
	each := func(change func(path string, data []byte) error) func(*testing.T, string) {
		return func(t *testing.T, folder string) {
			for _, path := range keptIn(t, folder) {
				data, err := os.ReadFile(path)
				if err == nil {
					err = change(path, data)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	// flip turns one bit of the byte that stands so far in the file.
	flip := func(part float64) func(string, []byte) error {
		return func(path string, data []byte) error {
			data[int(part*float64(len(data)-1))] ^= 4
			return os.WriteFile(path, data, 0o600)
		}
	}
	for name, test := range map[string]struct {
		damage func(*testing.T, string)
		want   string // in the warning
		again  bool   // the next run warns, too
	}{
		"nothing":         {func(*testing.T, string) {}, "", false},
		"first byte":      {each(flip(0)), "a file in it is damaged", false},
		"function offset": {each(flip(0.04)), "a file in it is damaged", false},
		"code":            {each(flip(0.5)), "a file in it is damaged", false},
		"last byte":       {each(flip(1)), "a file in it is damaged", false},
		"truncated":       {each(func(path string, data []byte) error { return os.Truncate(path, int64(len(data)/2)) }), "a file in it is damaged", false},
		"empty":           {each(func(path string, _ []byte) error { return os.Truncate(path, 0) }), "a file in it is damaged", false},
		"longer":          {each(func(path string, data []byte) error { return os.WriteFile(path, append(data, 0), 0o600) }), "a file in it is damaged", false},
		"a folder": {each(func(path string, _ []byte) error {
			return joinErrors(os.Remove(path), os.MkdirAll(filepath.Join(path, "more"), 0o700))
		}), "is no file", false},
		"a link to itself": {each(func(path string, _ []byte) error {
			return joinErrors(os.Remove(path), os.Symlink(filepath.Base(path), path))
		}), "is no file", false},
		"another version's": {each(func(path string, _ []byte) error {
			return os.Rename(path, filepath.Join(filepath.Dir(path), "0"+filepath.Base(path)[1:]))
		}), "", false},
		"no folder": {func(t *testing.T, folder string) {
			if err := joinErrors(os.RemoveAll(folder), os.WriteFile(folder, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}, "not a directory", true},
		"others may write": {func(t *testing.T, folder string) {
			if err := os.Chmod(filepath.Join(folder, "guests"), 0o777); err != nil {
				t.Fatal(err)
			}
		}, "others may write to", true},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "cache")
			if warnings := runCached(t, folder); len(warnings) > 0 {
				t.Fatalf("an empty cache: %q", warnings)
			}
			if kept := keptIn(t, folder); len(kept) != 1 {
				t.Fatalf("kept: %q", kept)
			}
			test.damage(t, folder)
			warnings := runCached(t, folder)
			switch {
			case test.want == "" && len(warnings) > 0:
				t.Errorf("warnings: %q", warnings)
			case test.want != "" && (len(warnings) != 1 || !strings.Contains(warnings[0], test.want)):
				t.Errorf("warnings: %q, want one with %q", warnings, test.want)
			}
			if warnings := runCached(t, folder); len(warnings) > 0 != test.again {
				t.Errorf("the next run: %q", warnings)
			}
			if !test.again {
				if entries, err := os.ReadDir(filepath.Join(folder, "guests")); err != nil || len(entries) != len(keptIn(t, folder)) {
					t.Errorf("something is left: %v, %v", entries, err)
				}
			}
		})
	}
}

// TestGuestsAreCompiledOnce compiles the guests that tests and scenarios run; who has what was kept then adds nothing to
// it.  make runs it alone, without the race detector, before all others.
func TestGuestsAreCompiledOnce(t *testing.T) {
	r := newRuntime(t, guest.InterruptMetered)
	for _, name := range []string{pingpong, faulty, "rdmarun/guests/synchronous"} {
		compileGo(t, r, name)
	}
	guests, err := filepath.Glob("../../guests/*.wasm")
	if err != nil || len(guests) == 0 {
		t.Skip("make guests builds them: ", err)
	}
	for _, path := range guests {
		if _, err := r.Compile(testContext(t), path); err != nil {
			t.Error(err)
		}
	}
	kept := keptIn(t, cacheDir)
	if len(kept) < len(guests) {
		t.Errorf("of %d guests are kept: %q", len(guests), kept)
	}
	// Other programs may add to the shared one meanwhile.
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "guests"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range kept {
		if err := os.Link(path, filepath.Join(folder, "guests", filepath.Base(path))); err != nil {
			t.Skipf("the cache is on another file system: %v", err)
		}
	}
	again, err := guest.New(t.Context(), guest.RuntimeConfig{CacheDir: folder, Warn: func(text string) { t.Error(text) }})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close(t.Context())
	if _, err := again.Compile(testContext(t), guests[0]); err != nil {
		t.Error(err)
	}
	if added := keptIn(t, folder); len(added) != len(kept) {
		t.Errorf("%d were kept, and then %d", len(kept), len(added))
	}
}

func joinErrors(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func keptIn(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "guests", "*-*-*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// runCached runs a guest twice in a runtime with that cache, and returns the warnings.
func runCached(t *testing.T, folder string) (warnings []string) {
	t.Helper()
	r, err := guest.New(t.Context(), guest.RuntimeConfig{CacheDir: folder, Warn: func(text string) { warnings = append(warnings, text) }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	provider, err := rdmacore.Open("soft")
	if err != nil {
		t.Fatal(err)
	}
	defer provider.Close()
	for range 2 {
		module, err := r.Compile(t.Context(), "../../guests/hello/hello.wasm")
		if err != nil {
			t.Fatal(err)
		}
		if result := r.Run(t.Context(), module, guest.Config{Provider: provider}); !result.OK() {
			t.Fatal(result.Err)
		}
	}
	return warnings
}
