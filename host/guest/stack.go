package guest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/tetratelabs/wazero/api"
	"golang.org/x/sys/unix"
)

// The stack of a guest's calls is wazero's: the guest cannot address it, and its memory does not count it.
const (
	// maxStack bounds the stack of a guest's calls, in bytes.  A script that recurses reaches the limit of its engine,
	// half a megabyte of linear memory, at 10 MiB.  A guest with a lower memory limit has less.
	maxStack = 16 << 20
	minStack = 64 << 10
	// reservedStack is more than the 50,000,000 bytes from which on wazero does not double a stack that is full, but
	// ends the guest (callStackCeiling).  Of these addresses the guest gets the upper end.
	reservedStack = 64 << 20
)

// stackSize is what the calls of this guest may take, in bytes.
func (g *Guest) stackSize() int { return stackOf(g.budget.Limits().Memory) }

// stackOf is what the calls of a guest may take that has this memory limit: whole pages.
func stackOf(memory int64) int {
	return int(min(max(memory/pageSize*pageSize, minStack), maxStack))
}

// errNoStack means that a guest cannot start because address space is short.
var errNoStack = errors.New("map the stack of its calls")

// invoke calls a function of the guest, on a stack that does not grow.
//
// wazero gives a function 10 KiB and doubles that when it is used up. It has no option for the maximum of 100 MB, with
// half as much again while it is copied.
func (g *Guest) invoke(ctx context.Context, function api.Function, arguments ...uint64) ([]uint64, error) {
	if !compiles() || function.Definition().GoFunction() != nil { // nothing of the guest's is compiled
		return function.Call(ctx, arguments...)
	}
	stack, err := newStack(function, g.stackSize())
	if err != nil {
		return nil, err
	}
	g.enter(stack)
	defer g.leave(stack)
	results, err := function.Call(ctx, arguments...)
	if err != nil {
		g.last = stack.frames()
	}
	return results, err
}

// callStack is the stack of one call.
type callStack struct {
	mapped []byte
	// Fields of wazero's call engine.
	stack  *[]byte
	top    *uintptr
	bottom **byte
	saved  **uint64 // the stack pointer during a call of the host
	frame  *uintptr // the frame pointer then; only on amd64
	// machine is nil where frames cannot be read.
	machine *machine
}

// newStack puts a stack of size bytes in the place of wazero's.
func newStack(function api.Function, size int) (*callStack, error) {
	s := &callStack{}
	engine := reflect.ValueOf(function).Elem()
	if !locate(engine, "stack", &s.stack) || !locate(engine, "stackTop", &s.top) ||
		!locate(engine.FieldByName("execCtx"), "stackBottomPtr", &s.bottom) ||
		!locate(engine.FieldByName("execCtx"), "stackPointerBeforeGoCall", &s.saved) ||
		!locate(engine.FieldByName("execCtx"), "framePointerBeforeGoCall", &s.frame) {
		return nil, fmt.Errorf("%w: this version of wazero keeps stacks in another way than rdmarun knows", errNoStack)
	}
	mapped, err := unix.Mmap(
		-1, 0, reservedStack, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE,
	)
	if err != nil {
		return nil, fmt.Errorf("%w: %dMiB of addresses: %w; see ulimit -v", errNoStack, reservedStack>>20, err)
	}
	s.mapped, s.machine = mapped, machineOf(engine)
	used := mapped[reservedStack-size:]
	if err := unix.Mprotect(used, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		return nil, errors.Join(
			fmt.Errorf("%w: %dKiB: %w; see vm.overcommit_memory", errNoStack, size>>10, err), unix.Munmap(mapped),
		)
	}
	// most guests touch a page or two; a kernel without huge pages rejects the advice
	_ = unix.Madvise(used, unix.MADV_NOHUGEPAGE)
	*s.stack, *s.bottom = mapped, &used[0]
	*s.top = uintptr(unsafe.Pointer(&used[size-16])) // aligned to 16 bytes
	return s, nil
}

// locate finds a field of a struct, which must have the type.
func locate[T any](of reflect.Value, name string, field **T) bool {
	if of.Kind() != reflect.Struct {
		return false
	}
	found := of.FieldByName(name)
	if !found.IsValid() || found.Type() != reflect.TypeFor[T]() {
		return false
	}
	*field = (*T)(found.Addr().UnsafePointer())
	return true
}

// free unmaps the stack, once nothing runs on it.  The garbage collector must not meet pointers to addresses that it
// may get next.
func (s *callStack) free() {
	*s.stack, *s.bottom, *s.saved, *s.top = nil, nil, nil, 0
	_ = unix.Munmap(s.mapped) // of a mapping that is there
}
