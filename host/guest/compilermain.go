package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"

	"rdmarun/host/sandbox"
)

// ownProgram is the executable of this process, also when another file has its path by now (proc(5)).
const ownProgram = "/proc/self/exe"

// CompilerArgument is the first argument of a process that is to call CompilerMain.
const CompilerArgument = "compile-one-guest"

// OwnCompiler is the command by which a program that calls CompilerMain starts itself as a compiler
// (RuntimeConfig.Compiler).
func OwnCompiler() []string { return []string{ownProgram, CompilerArgument} }

// CompilerMain is the whole of a compiler process. It drops what a compiler does not need, compiles the module that
// comes from standard input, and writes the answer to standard output. It returns the exit code of the process.
//
// A program calls it first of all, while it has one goroutine.  confine is called before the first byte is read, and
// may take away more; nil takes away nothing more.
func CompilerMain(confine func() error) int {
	err := limitCompiler()
	if err == nil && confine != nil {
		err = confine()
	}
	if err == nil {
		err = compileOne(os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// limitCompiler bounds this process.
func limitCompiler() error {
	// This also stops the runtime from reading the limit of the control group, by a descriptor that is closed next.
	runtime.GOMAXPROCS(min(compilerWorkers, runtime.NumCPU()))
	if err := closeInherited(); err != nil {
		return err
	}
	// The collector works harder before the limit is reached, and a recursion ends before memory does.
	debug.SetMemoryLimit(compilerMemory / 4 * 3)
	debug.SetMaxStack(compilerMemory / 8)
	// When memory is short, the kernel ends this process first (proc(5)).
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	used, err := addressSpace()
	if err != nil {
		return err
	}
	seconds := uint64(compilerTime.Seconds())
	for _, each := range []struct {
		resource int
		most     uint64
		name     string
	}{
		// The address space counts what the runtime has only reserved, and a sanitizer's shadow.
		{unix.RLIMIT_AS, used + compilerMemory, "RLIMIT_AS"},
		{unix.RLIMIT_CPU, seconds, "RLIMIT_CPU"},
		{unix.RLIMIT_NOFILE, compilerFiles, "RLIMIT_NOFILE"},
		{unix.RLIMIT_CORE, 0, "RLIMIT_CORE"},
		{unix.RLIMIT_FSIZE, 0, "RLIMIT_FSIZE"},
	} {
		var limit unix.Rlimit
		if err := unix.Getrlimit(each.resource, &limit); err != nil {
			return fmt.Errorf("getrlimit %s: %w", each.name, err)
		}
		limit.Max = min(limit.Max, each.most)
		limit.Cur = limit.Max
		if err := unix.Setrlimit(each.resource, &limit); err != nil {
			return fmt.Errorf("setrlimit %s: %w", each.name, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("prctl PR_SET_DUMPABLE: %w", err)
	}
	return sandbox.FilterCompiler()
}

// closeInherited closes what this process has from its parent, which inherited it itself without FD_CLOEXEC. The
// standard streams stay open, and so does what Go's poller may have opened already.
func closeInherited() error {
	const folder = "/proc/self/fd"
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		descriptor, err := strconv.Atoi(entry.Name())
		if err != nil || descriptor <= 2 {
			continue
		}
		// The folder's own descriptor is closed by now.
		if what, err := os.Readlink(filepath.Join(folder, entry.Name())); err == nil &&
			!strings.HasPrefix(what, "anon_inode:") {
			_ = unix.Close(descriptor)
		}
	}
	return nil
}

// addressSpace is how much of it this process has, in bytes (statm of proc(5)).
func addressSpace() (uint64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), " ")
	pages, err := strconv.ParseUint(first, 10, 64)
	return pages * uint64(os.Getpagesize()), err
}

// compilerWorkers is how many goroutines of wazero compile.
const compilerWorkers = 2

// compileOne answers one request.
func compileOne(in io.Reader, out io.Writer) error {
	request, err := io.ReadAll(io.LimitReader(in, keySize+1+maxRewritten+1))
	if err != nil {
		return fmt.Errorf("read the module: %w", err)
	}
	if len(request) <= keySize || len(request) > keySize+1+maxRewritten {
		return fmt.Errorf("a request of %d bytes", len(request))
	}
	key, looks, module := request[:keySize], request[keySize] == 1, request[keySize+1:]
	ctx := context.Background()
	store, cache, err := newCodeStore()
	if err != nil {
		return err
	}
	engine := wazero.NewRuntimeWithConfig(ctx, engineConfig(cache, looks))
	_, code, err := store.compile(experimental.WithCompilationWorkers(ctx, compilerWorkers), engine, module)
	failed := (*panicError)(nil)
	answer := [][]byte{{answerCode}}
	switch {
	case errors.As(err, &failed):
		fmt.Fprintf(os.Stderr, "%s\n", failed.stack)
		answer = [][]byte{{answerFailed}, []byte(failed.Error())}
	case err != nil && code != nil:
		answer = [][]byte{{answerFailed}, []byte(err.Error())}
	case err != nil:
		answer = [][]byte{{answerInvalid}, []byte(err.Error())}
	case code != nil:
		answer = append(answer, code.name[:], code.bytes)
	}
	for _, chunk := range append([][]byte{seal(key, "", answer...)}, answer...) {
		if _, err := out.Write(chunk); err != nil {
			return fmt.Errorf("write the answer: %w", err)
		}
	}
	return nil // what is left ends with the process
}
