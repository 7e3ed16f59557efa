// Package ccall calls functions of C that return within microseconds, at a fraction of the price of a cgo call. It
// does not notify the scheduler, and the processor stays with the goroutine. So such a function must not call Go, and
// must not wait for something that needs Go to run. A stop of the world waits for it.
//
// C runs on a stack of its own, because a goroutine's is too small. Meanwhile Go's runtime acts on a thread by
// signals, which have a stack of their own. It finds a program counter that is not Go code, and neither preempts the
// goroutine nor walks its stack. docs/decisions/0049-fast-calls.md has more.
package ccall

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stackSize is some ten times what the data path of the core takes.
const stackSize = 64 << 10

// Stack is what one call at a time runs on.
type Stack struct {
	memory []byte
	top    uintptr
}

// NewStack makes a stack above an inaccessible page; nil without an error where cgo must be used.
func NewStack() (*Stack, error) {
	if !available {
		return nil, nil
	}
	guard := os.Getpagesize()
	memory, err := unix.Mmap(
		-1, 0, guard+stackSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE,
	)
	if err != nil {
		return nil, fmt.Errorf("a stack for C: %w", err)
	}
	if err := unix.Mprotect(memory[:guard], unix.PROT_NONE); err != nil {
		unix.Munmap(memory)
		return nil, fmt.Errorf("a stack for C: %w", err)
	}
	return &Stack{memory: memory, top: uintptr(unsafe.Pointer(&memory[len(memory)-16])) &^ 15}, nil
}

// Free unmaps a stack that nothing runs on.
func (s *Stack) Free() {
	if s != nil && s.memory != nil {
		unix.Munmap(s.memory)
		s.memory = nil
	}
}

// Call calls function, which takes one pointer and returns nothing.
func (s *Stack) Call(function uintptr, argument unsafe.Pointer) { call(function, argument, s.top) }
