package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"rdmarun/host/guest"
	"rdmarun/rdmacore"
)

// measureStarts measures from the file of a guest, compiled before, to its end. The one in C sends itself a message;
// those in Go and in a script do nothing.
func measureStarts(ctx context.Context, all figures, skipped map[string]string) error {
	folder, err := os.MkdirTemp("", "rdmarun-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	module := filepath.Join(folder, "c.wasm")
	if err := exec.CommandContext(ctx, "clang", "--target=wasm32", "-O2", "-mbulk-memory", "-nostdlib", "-Isdk/c",
		"-Wl,--no-entry",
		"guests/hello_c/hello.c", "-o", module).Run(); err != nil {
		return err
	}
	provider, err := rdmacore.Open(rdmacore.Soft)
	if err != nil {
		return err
	}
	defer provider.Close()
	script := guest.Script{File: "nothing.js"}
	for figure, each := range map[string]struct {
		path   string
		config guest.Config
	}{
		"start-c":      {module, guest.Config{}},
		"start-go":     {"guests/echo.wasm", guest.Config{Args: []string{"--nothing"}}},
		"start-script": {"bin/javascript.wasm", script.Configure(guest.Config{})},
	} {
		if _, err := os.Stat(each.path); errors.Is(err, fs.ErrNotExist) {
			skipped[figure] = each.path + " is not built"
			continue
		}
		each.config.Provider = provider
		if err := start(ctx, folder, each.path, each.config); err != nil { // to be in the cache
			return err
		}
		var took []float64
		for range rounds {
			begin := time.Now()
			if err := start(ctx, folder, each.path, each.config); err != nil {
				return err
			}
			took = append(took, time.Since(begin).Seconds()*1e3)
		}
		all[figure] = median(took)
	}
	return nil
}

// start compiles a guest and runs it to its end, as a process does once.
func start(ctx context.Context, folder, path string, config guest.Config) error {
	runtime, err := guest.New(ctx, guest.RuntimeConfig{CacheDir: folder})
	if err != nil {
		return err
	}
	defer runtime.Close(ctx)
	module, err := runtime.Compile(ctx, path)
	if err != nil {
		return err
	}
	if result := runtime.Run(ctx, module, config); result.Outcome != guest.Exited {
		return result.Err
	}
	return nil
}
