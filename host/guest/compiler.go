package guest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"rdmarun/host/printable"
)

// CompilerError means that wazero's compiler, or the process that it runs in, could not compile a module.
type CompilerError struct {
	Module string
	Err    error
}

func (e *CompilerError) Error() string {
	return e.Module + ": this module cannot be compiled: " + e.Err.Error()
}
func (e *CompilerError) Unwrap() error { return e.Err }

// The bounds of a compiler process.  A Go program of 3 MB takes 120 MiB and a second.
const (
	// compilerMemory is what it may allocate, in bytes, and compilerFiles are its file descriptors.
	compilerMemory = 2 << 30
	compilerFiles  = 16
	// compilerTime is the processor time that it may use; the deadline of its caller is by the wall clock.
	compilerTime = 10 * time.Minute
	// compilerGrace is how long the pipes of a compiler that was killed may stay open.
	compilerGrace = time.Second
)

// A compiler process reads a request, which ends with the pipe. It has a key for this one answer, one byte that
// reports whether the code looks at contexts, and the module. The process writes an answer: a seal by that key, one
// byte for the kind of the rest, and the rest. The rest is the name of the code and the code, or a text. So half an
// answer is none.
const (
	answerCode    = 'C' // compiled
	answerInvalid = 'I' // wazero's validator refused the module
	answerFailed  = 'F' // wazero's compiler failed
)

// compileElsewhere compiles a module in a process of its own, which ends with ctx.  The code is nil where wazero
// interprets: the process has shown that the module is within the bounds.
func compileElsewhere(
	ctx context.Context, command []string, name string, module []byte, looks bool,
) (*machineCode, error) {
	request := make([]byte, keySize+1)
	key := request[:keySize]
	rand.Read(key)
	if looks {
		request[keySize] = 1
	}
	request = append(request, module...)
	answer := &boundedBuffer{most: sealSize + 1 + len(codeName{}) + maxCode}
	said := &boundedBuffer{most: 4 << 10, drops: true}
	// The parent of PR_SET_PDEATHSIG is a thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var process *exec.Cmd
	var err error
	for _, namespaces := range []uintptr{compilerNamespaces, 0} {
		process = compilerProcess(ctx, command, namespaces)
		process.Stdin, process.Stdout, process.Stderr = bytes.NewReader(request), answer, said
		if err = process.Start(); !namespacesRefused(err) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("compile %s: start the compiler's process: %w", name, err)
	}
	err = process.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case answer.full:
		return nil, &CompilerError{name, fmt.Errorf("its machine code has more than %dMiB", maxCode>>20)}
	case err != nil:
		return nil, &CompilerError{name, whyEnded(process, err, string(said.kept))}
	}
	kind, content, whole := openAnswer(key, answer.kept)
	switch {
	case !whole:
		return nil, &CompilerError{name, errors.New("the compiler gave no complete answer")}
	case kind == answerInvalid:
		return nil, formatError(name, errors.New(printable.Line(string(content))))
	case kind == answerFailed:
		return nil, &CompilerError{name, errors.New(printable.Line(string(content)))}
	case len(content) == 0:
		return nil, nil
	}
	return codeOf(content), nil
}

// compilerNamespaces leave a compiler without a network, where users may make namespaces: with a namespace of users,
// this needs no privilege.
const compilerNamespaces = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC

// namespacesRefused reports whether a process cannot be started in new namespaces. Either the system's policy forbids
// it (EPERM, EACCES), there are too many (ENOSPC, EUSERS), or the kernel has none (EINVAL, ENOSYS).
func namespacesRefused(err error) bool {
	return slices.ContainsFunc([]error{
		syscall.EPERM, syscall.EACCES, syscall.ENOSPC, syscall.EUSERS, syscall.EINVAL, syscall.ENOSYS,
	},
		func(each error) bool { return errors.Is(err, each) })
}

// compilerProcess is a process to be started.
func compilerProcess(ctx context.Context, command []string, namespaces uintptr) *exec.Cmd {
	process := exec.CommandContext(ctx, command[0], command[1:]...)
	if command[0] == ownProgram {
		process.Args[0] = "rdmarun" // and not that path
	}
	process.Env = []string{} // nothing of this process's
	process.Dir = "/"
	process.WaitDelay = compilerGrace
	// It has no terminal and no signals from one, and does not outlive its parent.
	process.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: namespaces}
	return process
}

// openAnswer checks the seal of an answer.
func openAnswer(key, answer []byte) (kind byte, content []byte, whole bool) {
	if len(answer) <= sealSize || !hmac.Equal(answer[:sealSize], seal(key, "", answer[sealSize:])) {
		return 0, nil, false
	}
	kind, content = answer[sealSize], answer[sealSize+1:]
	return kind, content, kind != answerCode || len(content) == 0 || len(content) >= len(codeName{})
}

// shortages are the messages of Go's runtime, its C library and its race detector when there is no more memory.
var shortages = []string{"fatal error: runtime: out of memory", "fatal error: out of memory", "cannot allocate memory",
	"pthread_create failed", "failed to create new OS thread", "ThreadSanitizer failed to allocate",
	"too many address space collisions for -race mode"}

// whyEnded explains why a compiler process ended without an answer.
func whyEnded(process *exec.Cmd, err error, said string) error {
	state := process.ProcessState
	status, _ := state.Sys().(syscall.WaitStatus)
	killed := status.Signaled() && status.Signal() == syscall.SIGKILL
	fatal := ""
	for line := range strings.Lines(said) {
		for _, prefix := range []string{"fatal error: ", "panic: "} {
			if text, ok := strings.CutPrefix(strings.TrimSpace(line), prefix); ok && fatal == "" {
				fatal = text
			}
		}
	}
	switch {
	case killed && state.UserTime()+state.SystemTime() >= compilerTime-time.Second:
		return fmt.Errorf("it takes more than %s of processor time", compilerTime)
	case killed:
		return errors.New("the compiler was killed, by a user or because memory was short")
	case slices.ContainsFunc(shortages, func(words string) bool { return strings.Contains(said, words) }):
		return fmt.Errorf("it takes more than %dMiB of memory", compilerMemory>>20)
	case fatal != "":
		return fmt.Errorf("the compiler failed: %s", printable.Line(fatal))
	}
	first, _, _ := strings.Cut(strings.TrimSpace(said), "\n")
	if first == "" {
		return fmt.Errorf("the compiler ended without an answer: %w", err)
	}
	return fmt.Errorf("the compiler ended without an answer: %w: %s", err, printable.Line(first))
}

// boundedBuffer takes so many bytes; of more it remembers that there were.  It is no bytes.Buffer, which reads by
// itself (io.ReaderFrom), and all there is.
type boundedBuffer struct {
	kept  []byte
	most  int
	full  bool
	drops bool // and takes the rest without keeping it
}

// Write implements io.Writer.
func (b *boundedBuffer) Write(data []byte) (int, error) {
	kept := data[:min(len(data), b.most-len(b.kept))]
	b.kept = append(b.kept, kept...)
	if len(kept) < len(data) {
		if b.full = true; !b.drops {
			return len(kept), errors.New("too much")
		}
	}
	return len(data), nil
}
