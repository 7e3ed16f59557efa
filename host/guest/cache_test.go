package guest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdmarun/host/guest"
	"rdmarun/rdmacore"
)

// TestCacheIsAHint damages the cached files of a guest in every way. The guest runs all the same, after one warning,
// and is cached again if possible.
func TestCacheIsAHint(t *testing.T) {
	t.Run("code", func(t *testing.T) { testCacheIsAHint(t, keptIn) })
	t.Run("module", func(t *testing.T) { testCacheIsAHint(t, modulesIn) })
}

// testCacheIsAHint damages the files that kept lists.
func testCacheIsAHint(t *testing.T, kept func(*testing.T, string) []string) {
	each := func(change func(path string, data []byte) error) func(*testing.T, string) {
		return func(t *testing.T, folder string) {
			for _, path := range kept(t, folder) {
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
	// flip turns one bit of the byte at that offset of the file.
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
		"checksum":        {each(flip(0.002)), "a file in it is damaged", false},
		"function offset": {each(flip(0.04)), "a file in it is damaged", false},
		"code":            {each(flip(0.5)), "a file in it is damaged", false},
		"last byte":       {each(flip(1)), "a file in it is damaged", false},
		"truncated": {
			each(func(path string, data []byte) error { return os.Truncate(path, int64(len(data)/2)) }),
			"a file in it is damaged", false,
		},
		"empty": {
			each(func(path string, _ []byte) error { return os.Truncate(path, 0) }), "a file in it is damaged", false,
		},
		"longer": {
			each(func(path string, data []byte) error { return os.WriteFile(path, append(data, 0), 0o600) }),
			"a file in it is damaged", false,
		},
		"a folder": {each(func(path string, _ []byte) error {
			return joinErrors(os.Remove(path), os.MkdirAll(filepath.Join(path, "more"), 0o700))
		}), "is not a file", false},
		"a link to itself": {each(func(path string, _ []byte) error {
			return joinErrors(os.Remove(path), os.Symlink(filepath.Base(path), path))
		}), "is not a file", false},
		"another version's": {each(func(path string, _ []byte) error {
			return os.Rename(path, filepath.Join(filepath.Dir(path), "0"+filepath.Base(path)[1:]))
		}), "", false},
		"another module's": {func(t *testing.T, folder string) {
			own := kept(t, folder)[0]
			runCached(t, folder, "testdata/exit.wasm") // with the same key
			for _, path := range kept(t, folder) {
				if path != own {
					if err := os.Rename(path, own); err != nil {
						t.Fatal(err)
					}
				}
			}
		}, "made with another key", false},
		"of the other kind": {func(t *testing.T, folder string) {
			for _, path := range append(keptIn(t, folder), modulesIn(t, folder)...) {
				if own := kept(t, folder)[0]; path != own {
					data, err := os.ReadFile(path)
					if err := joinErrors(err, os.WriteFile(own, data, 0o600)); err != nil {
						t.Fatal(err)
					}
				}
			}
		}, "made with another key", false},
		"another key's": {func(t *testing.T, folder string) {
			other := filepath.Join(t.TempDir(), "other")
			runCached(t, other)
			if err := os.Rename(kept(t, other)[0], kept(t, folder)[0]); err != nil {
				t.Fatal(err)
			}
		}, "made with another key", false},
		"no key": {func(t *testing.T, folder string) {
			if err := os.Remove(filepath.Join(folder, "guests", "key")); err != nil {
				t.Fatal(err)
			}
		}, "made with another key", false},
		"short key": {func(t *testing.T, folder string) {
			if err := os.Truncate(filepath.Join(folder, "guests", "key"), 31); err != nil {
				t.Fatal(err)
			}
		}, "is not a key; remove it", true},
		"key that others may read": {func(t *testing.T, folder string) {
			if err := os.Chmod(filepath.Join(folder, "guests", "key"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "others may read", true},
		"key that is a link": {func(t *testing.T, folder string) {
			key := filepath.Join(folder, "guests", "key")
			if err := joinErrors(os.Rename(key, folder+".key"), os.Symlink(folder+".key", key)); err != nil {
				t.Fatal(err)
			}
		}, "key is not a file", true},
		"no folder": {func(t *testing.T, folder string) {
			if err := joinErrors(os.RemoveAll(folder), os.WriteFile(folder, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}, "not a directory", true},
		"a link to another folder": {func(t *testing.T, folder string) {
			guests := filepath.Join(folder, "guests")
			if err := joinErrors(
				os.Rename(guests, folder+".guests"), os.Symlink(folder+".guests", guests),
			); err != nil {
				t.Fatal(err)
			}
		}, "guests: not a directory", true},
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
			if found := kept(t, folder); len(found) != 1 {
				t.Fatalf("kept: %q", found)
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
				// the key
				if entries, err := os.ReadDir(filepath.Join(folder, "guests")); err != nil ||
					len(entries) != len(keptIn(t, folder))+len(modulesIn(t, folder))+1 {
					t.Errorf("something is left: %v, %v", entries, err)
				}
			}
		})
	}
}

// TestGuestsAreCompiledOnce compiles the guests that tests and scenarios run; who has what was kept then adds nothing
// to it.  make runs it alone, without the race detector, before all others.
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
	for _, path := range append(kept, filepath.Join(cacheDir, "guests", "key")) {
		if err := os.Link(path, filepath.Join(folder, "guests", filepath.Base(path))); err != nil {
			t.Skipf("the cache is on another file system: %v", err)
		}
	}
	again, err := guest.New(t.Context(), guest.RuntimeConfig{
		CacheDir: folder, Warn: func(text string) { t.Error(text) },
	})
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

// keptIn lists the machine code in a cache, and modulesIn the rewritten modules.
func keptIn(t *testing.T, folder string) []string    { return filesIn(t, folder, "*.code") }
func modulesIn(t *testing.T, folder string) []string { return filesIn(t, folder, "*.module") }

func filesIn(t *testing.T, folder, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "guests", pattern))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// runCached runs guests (hello where none are named) twice in a runtime with that cache, and returns the warnings.
func runCached(t *testing.T, folder string, paths ...string) (warnings []string) {
	t.Helper()
	r, err := guest.New(t.Context(), guest.RuntimeConfig{
		CacheDir: folder, Warn: func(text string) { warnings = append(warnings, text) },
	})
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
	if paths == nil {
		paths = []string{helloGuest}
	}
	for _, path := range append(paths, paths...) {
		module, err := r.Compile(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if result := r.Run(t.Context(), module, guest.Config{Provider: provider}); !result.OK() {
			t.Fatal(result.Err)
		}
	}
	return warnings
}

// TestCacheNotesUse wants code that is used to count as new again.
func TestCacheNotesUse(t *testing.T) {
	folder := t.TempDir()
	runCached(t, folder)
	old := time.Now().Add(-24 * time.Hour)
	for _, path := range append(keptIn(t, folder), modulesIn(t, folder)...) {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	runCached(t, folder)
	kept := append(keptIn(t, folder), modulesIn(t, folder)...)
	for _, path := range kept {
		if info, err := os.Stat(path); err != nil || !info.ModTime().After(old.Add(time.Hour)) {
			t.Errorf("%s was used last at %v, %v", path, info.ModTime(), err)
		}
	}
	if len(kept) != 2 {
		t.Errorf("in the cache: %q", kept)
	}
}

// TestCacheIsBounded trims a cache: what was used least recently goes first, and old parts; the key and the user's own
// files stay.
func TestCacheIsBounded(t *testing.T) {
	folder := t.TempDir()
	now := time.Now()
	for name, age := range map[string]time.Duration{
		"key": 9 * time.Hour, "a.code": 3 * time.Hour, "b.module": 2 * time.Hour, "c.code": time.Minute, ".part-new": 0,
		".part-old": 2 * time.Hour,
	} {
		path := filepath.Join(folder, name)
		if err := joinErrors(
			os.WriteFile(path, make([]byte, 100), 0o600), os.Chtimes(path, now.Add(-age), now.Add(-age)),
		); err != nil {
			t.Fatal(err)
		}
	}
	own := filepath.Join(folder, "hello", "folder")
	if err := joinErrors(
		os.MkdirAll(own, 0o700), os.Chtimes(filepath.Dir(own), now.Add(-2*time.Hour), now.Add(-2*time.Hour)),
	); err != nil {
		t.Fatal(err)
	}
	if err := guest.TrimCache(folder, 250); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	if want := ".part-new b.module c.code hello key"; strings.Join(left, " ") != want {
		t.Errorf("left: %q, want %q", left, want)
	}
}

// TestCacheTrustsItsKey seals one guest's module as another's, with the key: it is run. So a guest that is started
// from the cache is what was kept, and its functions are not decoded again. Only the seal decides what may run.
func TestCacheTrustsItsKey(t *testing.T) {
	folder := t.TempDir()
	runCached(t, folder)
	hello := modulesIn(t, folder)[0]
	runCached(t, folder, "testdata/exit.wasm")
	for _, path := range modulesIn(t, folder) {
		if path != hello {
			if err := guest.SealAs(folder, filepath.Base(path), filepath.Base(hello)); err != nil {
				t.Fatal(err)
			}
		}
	}
	r := runtimeOf(t, folder)
	module, err := r.Compile(t.Context(), helloGuest)
	if err != nil {
		t.Fatal(err)
	}
	var out output
	if result := r.Run(t.Context(), module, guest.Config{Provider: newProvider(t), Stdout: &out}); !module.Cached() ||
		out.String() != "" {
		t.Errorf("cached %t, %v, printed %q", module.Cached(), result, &out)
	}
}

// TestCacheOfAnotherBuild checks that modules that another build of the program has rewritten are not used, without a
// warning. A program that does not know its build must keep none.
func TestCacheOfAnotherBuild(t *testing.T) {
	folder := t.TempDir()
	for _, step := range []struct {
		build   string
		modules int // that are kept then
	}{{"", 0}, {"one", 1}, {"one", 1}, {"two", 2}, {"", 2}} {
		r := runtimeOf(t, folder)
		guest.SetBuild(r, step.build)
		if _, err := r.Compile(t.Context(), helloGuest); err != nil {
			t.Fatal(err)
		}
		if kept := modulesIn(t, folder); len(kept) != step.modules {
			t.Errorf("build %q: %q are kept, not %d", step.build, kept, step.modules)
		}
	}
	if kept := keptIn(t, folder); len(kept) != 1 {
		t.Errorf("machine code, which does not depend on it: %q", kept)
	}
}

const helloGuest = "../../guests/hello/hello.wasm"

// runtimeOf is a runtime with a cache of which there is nothing to warn.
func runtimeOf(t *testing.T, folder string) *guest.Runtime {
	t.Helper()
	r, err := guest.New(t.Context(), guest.RuntimeConfig{CacheDir: folder, Warn: func(text string) { t.Error(text) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	return r
}

// anotherUser is one that has no files here.
const anotherUser = 65533

// TestCacheOfAnotherUser gives parts of a cache to another user, and has one who may rename the folder exchange it
// while guests start.
func TestCacheOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files to another user")
	}
	for name, what := range map[string]string{"folder": "", "key": "key", "code": "*.code", "module": "*.module"} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "cache")
			runCached(t, folder)
			theirs, err := filepath.Glob(filepath.Join(folder, "guests", what))
			if err != nil || len(theirs) != 1 {
				t.Fatal(theirs, err)
			}
			if err := os.Chown(theirs[0], anotherUser, anotherUser); err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf("%s belongs to user %d", filepath.Clean(theirs[0]), anotherUser)
			if warnings := runCached(t, folder); len(warnings) != 1 || !strings.Contains(warnings[0], want) {
				t.Errorf("warnings: %q, want one with %q", warnings, want)
			}
		})
	}
	t.Run("exchanged", func(t *testing.T) {
		parent := t.TempDir()
		mine, theirs := filepath.Join(parent, "cache"), filepath.Join(parent, "theirs")
		runCached(t, mine)
		runCached(t, theirs)
		// Theirs has another module and its machine code by the names of hello's.
		other := filepath.Join(parent, "other")
		runCached(t, other, "testdata/exit.wasm")
		if err := joinErrors(
			os.Rename(keptIn(t, other)[0], keptIn(t, theirs)[0]),
			os.Rename(modulesIn(t, other)[0], modulesIn(t, theirs)[0]),
		); err != nil {
			t.Fatal(err)
		}
		for _, path := range append(
			append(keptIn(t, theirs), modulesIn(t, theirs)...), filepath.Join(theirs, "guests", "key"),
			filepath.Join(theirs, "guests"), theirs, parent,
		) {
			if err := os.Chown(path, anotherUser, anotherUser); err != nil {
				t.Fatal(err)
			}
		}
		done, ended := make(chan struct{}), make(chan error)
		go func() {
			var err error
			for err == nil {
				select {
				case <-done:
					ended <- nil
					return
				default:
					err = unix.Renameat2(unix.AT_FDCWD, mine, unix.AT_FDCWD, theirs, unix.RENAME_EXCHANGE)
				}
			}
			<-done
			ended <- err
		}()
		var refused, used int
		for range 100 {
			switch warnings := runCached(t, mine); {
			case len(warnings) == 0:
				used++
			case len(warnings) == 1 && strings.Contains(warnings[0], "belongs to user"):
				refused++
			default:
				t.Errorf("warnings: %q", warnings)
			}
		}
		close(done)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		t.Logf("used %d times, refused %d times", used, refused)
	})
}
