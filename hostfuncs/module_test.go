package hostfuncs

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/tetratelabs/wazero/sys"

	"rdmarun/rdmacore"
)

// call calls a function as wazero does: 64-bit words, of which i32 parameters use the lower half.
func call(t testing.TB, i *Instance, name string, words ...uint64) int32 {
	t.Helper()
	for _, f := range Functions() {
		if f.Name != name {
			continue
		}
		stack := append(append([]uint64(nil), words...), 0)
		f.implementation()(i.Context(i.ctx), stack)
		if stack[0]>>32 != 0 {
			t.Errorf("%s: the result %#x is not extended with zeros", name, stack[0])
		}
		return int32(stack[0])
	}
	t.Fatalf("there is no %s", name)
	return 0
}

func expect(t testing.TB, i *Instance, want syscall.Errno, name string, words ...uint64) {
	t.Helper()
	if got := call(t, i, name, words...); got != -int32(want) {
		t.Errorf("%s: %d (%v), not %v", name, got, i.lastError, want)
	}
}

func TestUpperHalvesAreIgnored(t *testing.T) {
	const garbage = 0x2b6d << 32
	i := newInstance(t, 4096, Config{})
	channel := call(t, i, "create_event_channel")
	if channel <= 0 {
		t.Fatal(i.lastError)
	}
	i.memory[64] = 'x'
	expect(t, i, 0, "log", garbage|1, garbage|64, garbage|1)
	expect(t, i, 0, "destroy_event_channel", garbage|uint64(channel))
}

func TestDeniedCapabilities(t *testing.T) {
	i := newInstance(t, 4096, Config{Deny: CapabilityCM | CapabilityBase})
	expect(t, i, syscall.EPERM, "create_event_channel")
	if got := call(t, i, "abi_version"); got != Current.Number() {
		t.Errorf("abi_version is %#x: the base cannot be denied", got)
	}
	copy(i.memory[64:], "alloc_pdlisten")
	for name, want := range map[string]int32{"alloc_pd": 1, "listen": 0} {
		at := map[string]uint64{"alloc_pd": 64, "listen": 72}[name]
		if got := call(t, i, "has_function", at, uint64(len(name))); got != want {
			t.Errorf("has_function(%s) is %d", name, got)
		}
	}
}

func TestErrorText(t *testing.T) {
	i := newInstance(t, 4096, Config{})
	if got := call(t, i, "error_text", 64, 100); got != 0 {
		t.Errorf("%d bytes before anything failed", got)
	}
	expect(t, i, syscall.EBADF, "listen", 12345, 1)
	n := call(t, i, "error_text", 64, 100)
	if text := string(i.memory[64 : 64+n]); text != i.lastError.Error() {
		t.Errorf("%q, not %q", text, i.lastError)
	}
	if n := call(t, i, "error_text", 64, 5); n != 5 {
		t.Errorf("%d bytes in room for 5", n)
	}
	expect(t, i, syscall.EFAULT, "error_text", 4090, 100)
}

func TestWaits(t *testing.T) {
	never := func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
	i := newInstance(t, 4096, Config{Barrier: never})
	millisecond := uint64(time.Millisecond)
	expect(t, i, syscall.ETIMEDOUT, "barrier", 64, 1, millisecond)
	const want = "connection timed out: the call did not end within its timeout of 1ms"
	if got := i.lastError.Error(); got != want {
		t.Errorf("the error is %q, want %q", got, want)
	}
	expect(t, i, syscall.ETIMEDOUT, "barrier", 64, 1, 0)

	if got := call(t, i, "stop_requested"); got != 0 {
		t.Errorf("stop_requested is %d", got)
	}
	time.AfterFunc(time.Millisecond, i.RequestStop)
	expect(t, i, syscall.ECANCELED, "barrier", 64, 1, ^uint64(0))
	if got := call(t, i, "stop_requested"); got != 1 {
		t.Errorf("stop_requested is %d", got)
	}
	// Once is enough: what a guest waits for afterwards, to leave in good order, is not broken off.
	expect(t, i, syscall.ETIMEDOUT, "barrier", 64, 1, millisecond)
}

func TestBarrierNamesAreBounded(t *testing.T) {
	came := ""
	i := newInstance(t, 4096, Config{Barrier: func(_ context.Context, name string) error { came = name; return nil }})
	expect(t, i, syscall.EINVAL, "barrier", 64, 256, 0)
	if must(t, i, "barrier", 64, 255, 0); len(came) != 255 {
		t.Errorf("the barrier's name is %q", came)
	}
}

func TestWaitsEndTheGuestWithItsContext(t *testing.T) {
	never := func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
	i := newInstance(t, 4096, Config{Barrier: never})
	ctx, cancel := context.WithCancel(context.Background())
	i.Context(ctx)
	time.AfterFunc(time.Millisecond, cancel)
	defer func() {
		exit, ok := recover().(*sys.ExitError)
		if !ok || !errors.Is(exit, context.Canceled) {
			t.Errorf("recovered %v", exit)
		}
		i.Context(context.Background())
	}()
	call(t, i, "barrier", 64, 1, ^uint64(0))
	t.Error("the wait returned")
}

func TestErrnos(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want syscall.Errno
	}{
		"errno":                {syscall.EADDRINUSE, syscall.EADDRINUSE},
		"deadline":             {context.DeadlineExceeded, syscall.ETIMEDOUT},
		"canceled":             {context.Canceled, syscall.ECANCELED},
		"anything":             {errors.New("x"), syscall.EIO},
		"zero":                 {syscall.Errno(0), syscall.EIO},
		"no errno":             {syscall.Errno(1 << 20), syscall.EIO},
		"the kernel's own":     {syscall.Errno(524), syscall.EOPNOTSUPP},
		"none of the ABI":      {syscall.EXDEV, syscall.EIO},
		"a status of an event": {&rdmacore.Error{Op: "rdma_connect", Errno: 1000}, syscall.EIO},
	} {
		if got := errnoOf(c.err); got != c.want {
			t.Errorf("%s: %v, not %v", name, got, c.want)
		}
	}
}
