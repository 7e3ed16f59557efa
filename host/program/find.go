package program

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// NotFoundError is a program that does not exist.
type NotFoundError struct{ Name string }

func (e *NotFoundError) Error() string { return e.Name + ": no such program" }

// NotRunnableError is a program that exists, and cannot be run, or not on the embedded provider.
type NotRunnableError struct {
	Path string
	err  error
}

func (e *NotRunnableError) Error() string { return e.err.Error() }
func (e *NotRunnableError) Unwrap() error { return e.err }

// Find finds a program as a shell would. A name without a slash is searched in PATH. Another one is relative to folder
// ("": to the folder of this process).
//
// With preload, it rejects a program that no library can be preloaded into. The dynamic linker ignores LD_PRELOAD for
// programs that are set-user-ID or have file capabilities, and does not run for static ones. All of them would
// silently run without the soft provider. A script is what its interpreter is.
func Find(name, folder string, preload bool) (string, error) {
	wanted := name
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		// exec.LookPath searches PATH for a path without a slash, which filepath.Join(".", "./program") is.
		absolute, err := filepath.Abs(filepath.Join(folder, name))
		if err != nil {
			return "", fmt.Errorf("find %s: %w", name, err)
		}
		wanted = absolute
	}
	path, err := exec.LookPath(wanted)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return "", &NotFoundError{name}
	}
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", &NotRunnableError{wanted, err}
	}
	if preload {
		err = preloadable(path)
		if interpreter := interpreterOf(path); err == nil && interpreter != "" {
			if err = preloadable(interpreter); err != nil {
				err = fmt.Errorf("%s is a script: %w", path, err)
			}
		}
		if err != nil {
			return "", &NotRunnableError{path, err}
		}
	}
	return path, nil
}

// capabilities is the attribute of a file with its capabilities (capabilities(7)).
const capabilities = "security.capability"

// preloadable returns why no library can be preloaded into a program.
func preloadable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		return fmt.Errorf(
			"%s is set-user-ID or set-group-ID, and nothing can be preloaded into such a program: run a copy without "+
				"that bit",
			path,
		)
	}
	if size, err := unix.Getxattr(path, capabilities, nil); err == nil && size > 0 {
		return fmt.Errorf(
			"%s has file capabilities, and nothing can be preloaded into such a program: run a copy without them "+
				"(setcap -r)",
			path,
		)
	}
	if err := otherArchitecture(path); err != nil {
		return err
	}
	file, err := elf.Open(path)
	if err != nil {
		return nil // a script, or what the kernel will reject
	}
	defer file.Close()
	if !slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return fmt.Errorf("%s is statically linked, and nothing can be preloaded into it: link it dynamically", path)
	}
	return nil
}

// machines are the architectures of ELF files that rdmarun is built for.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// otherArchitecture returns an error for an ELF file of another architecture than that of rdmarun.
func otherArchitecture(path string) error {
	own, known := machines[runtime.GOARCH]
	file, err := elf.Open(path)
	if err != nil || !known {
		return nil
	}
	defer file.Close()
	if file.Machine == own && file.Class == elf.ELFCLASS64 && file.ByteOrder.String() == "LittleEndian" {
		return nil
	}
	return fmt.Errorf(
		"%s is for another architecture (%v, %v), and rdmarun is for %v: build it for this machine", path, file.Machine,
		file.Class, own,
	)
}

// maxInterpreter is the length of a line with "#!" that the kernel reads (BINPRM_BUF_SIZE).
const maxInterpreter = 256

// interpreterOf is the interpreter of a script; "" for another file.
func interpreterOf(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	line, _ := bufio.NewReader(io.LimitReader(file, maxInterpreter)).ReadString('\n')
	rest, script := strings.CutPrefix(line, "#!")
	if fields := strings.Fields(rest); script && len(fields) > 0 && filepath.IsAbs(fields[0]) {
		if _, err := os.Stat(fields[0]); err == nil {
			return fields[0]
		}
	}
	return ""
}
