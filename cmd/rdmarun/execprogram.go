package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
)

// findProgram finds a program as a shell would, and refuses one that no library can be preloaded into: the
// dynamic linker ignores LD_PRELOAD for set-user-ID programs and has no part in static ones, and both would
// then silently run without the soft provider.
func findProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return "", withExit(exitNoProgram, fmt.Errorf("%s: no such program", name))
	}
	if err != nil {
		return "", withExit(exitNotRunnable, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", withExit(exitNotRunnable, err)
	}
	if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		return "", withExit(exitNotRunnable, fmt.Errorf("%s is set-user-ID or set-group-ID, and nothing can be preloaded into such a program: run a copy without that bit", path))
	}
	if isStatic(path) {
		return "", withExit(exitNotRunnable, fmt.Errorf("%s is statically linked, and nothing can be preloaded into it: link it dynamically", path))
	}
	return path, nil
}

// isStatic tells whether a file is an ELF program without an interpreter.  Scripts are not: theirs is found
// by the kernel.
func isStatic(path string) bool {
	file, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	return !slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
}
