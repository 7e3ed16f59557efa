package guest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"
	"golang.org/x/sys/unix"

	"rdmarun/host/guest/wasm"
	"rdmarun/hostfuncs"
	"rdmarun/rdmacore"
)

// startFunction is a WASI command's entry.
const startFunction = "_start"

// run is the whole life of a guest, on one goroutine.
func (g *Guest) run(ctx context.Context) Result {
	began := time.Now()
	ctx = context.WithValue(ctx, guestKey{}, g)
	g.outputs = g.newOutputs(ctx)
	defer g.outputs.close()
	memory := &linearMemory{
		budget: g.budget, instance: g.instance, spare: g.module.spare, pinned: len(g.config.CPUs) > 0,
		ticked: g.tick,
	}
	g.memory = memory
	module, err := g.instantiate(ctx, memory)
	var result Result
	if err != nil {
		result = Result{Outcome: Failed, ExitCode: codeFailed, Err: fmt.Errorf("start guest %s: %w", g.name, err)}
	} else {
		result = g.outcome(ctx, g.call(ctx, module))
	}
	if g.trace != nil {
		g.trace.End()
	}
	g.over.Store(true) // before what is freed shows at its peers
	// The order is that of the package comment: nothing below runs guest code.
	freed, err := g.instance.Close()
	if module != nil {
		err = errors.Join(err, module.Close(context.Background()))
	}
	memory.release()
	if err != nil {
		result.Outcome, result.ExitCode = Failed, codeFailed
		result.Err = errors.Join(result.Err, err)
	}
	result.Freed, result.Duration = freed, time.Since(began)
	return result
}

// instantiate makes the module instance without running any of its code, where the module is metered.
func (g *Guest) instantiate(ctx context.Context, memory *linearMemory) (module api.Module, err error) {
	allocator := experimental.MemoryAllocatorFunc(func(_, maximum uint64) experimental.LinearMemory {
		memory.allocate(maximum)
		return memory
	})
	defer func() {
		// wazero takes a nil from Reallocate for a bug in the allocator.
		if memory.err != nil {
			recover()
			module, err = nil, memory.err
		}
	}()
	ctx = experimental.WithMemoryAllocator(g.instance.Context(ctx), allocator)
	if host := g.module.host; host != nil {
		ctx = experimental.WithImportResolver(ctx, func(name string) api.Module {
			if name == hostfuncs.ModuleName {
				return host
			}
			return nil
		})
	}
	return g.module.engine.InstantiateModule(ctx, g.module.compiled, g.moduleConfig(ctx))
}

// call runs the guest until it ends or has to.
func (g *Guest) call(ctx context.Context, module api.Module) error {
	g.running, g.life = module, ctx
	if g.trace != nil && g.config.script {
		g.trace.Hides = ofEngine(module)
	}
	g.boundTables(module)
	stop, metered := module.ExportedGlobal(wasm.StopGlobal).(api.MutableGlobal)
	set := make(chan struct{})
	defer func(unwatch func() bool) {
		if !unwatch() {
			<-set // the global must not be touched when the module is closed
		}
	}(context.AfterFunc(ctx, func() {
		g.instance.End()
		if metered {
			stop.Set(1)
		}
		close(set)
	}))
	ctx = g.instance.Context(ctx)
	for _, name := range []string{wasm.StartExport, startFunction} {
		function := module.ExportedFunction(name)
		if function == nil {
			continue
		}
		if _, err := g.invoke(ctx, function); err != nil {
			return err
		}
	}
	return nil
}

// boundTables lets the guest's tables grow as far as its budget allows.
func (g *Guest) boundTables(module api.Module) {
	room, grown := module.ExportedGlobal(wasm.RoomGlobal).(api.MutableGlobal), module.ExportedGlobal(wasm.GrownGlobal)
	g.budget.SetTables(
		func() int64 { return int64(uint32(grown.Get())) * wasm.ElementSize },
		func(bytes int64) {
			elements := bytes/wasm.ElementSize - int64(uint32(grown.Get()))
			room.Set(uint64(uint32(max(0, min(elements, 1<<31)))))
		})
}

// outcome reads how the guest ended from the error of the call.
func (g *Guest) outcome(ctx context.Context, err error) Result {
	var exit *sys.ExitError
	var bug runtime.Error
	switch {
	case err == nil:
		return Result{Outcome: Exited}
	case errors.As(err, &exit) && (exit.ExitCode() < sys.ExitCodeDeadlineExceeded || ctx.Err() == nil):
		// The last numbers are those by which the host ends a guest, and may be the guest's own: main returned -1.
		code := int(min(exit.ExitCode(), 255))
		return Result{Outcome: Exited, ExitCode: code, Err: exitedError(code, g.outputs.stderr.onlyLine())}
	case errors.Is(context.Cause(ctx), errTimeLimit):
		return Result{Outcome: TimedOut, ExitCode: codeTimedOut, Err: g.placed(context.Cause(ctx), err)}
	case ctx.Err() != nil:
		return Result{Outcome: Stopped, ExitCode: CodeStopped,
			Err: g.placed(fmt.Errorf("the guest was stopped: %w", context.Cause(ctx)), err)}
	case errors.Is(err, errNoStack):
		return Result{Outcome: Failed, ExitCode: codeFailed, Err: fmt.Errorf("start guest %s: %w", g.name, err)}
	case errors.As(err, &bug):
		return Result{Outcome: Failed, ExitCode: codeFailed,
			Err: fmt.Errorf("a bug in rdmarun, not in the guest: %w", err)}
	}
	return Result{Outcome: Trapped, ExitCode: codeTrapped, Err: g.trapError(err)}
}

// placed is why the guest was ended, with the place. That is a function of the host, and functions of the guest if
// they have names.
func (g *Guest) placed(why, err error) error {
	place := &PlacedError{Err: why, Stack: g.describe([]readStack{g.last})}
	if len(place.Stack) == 0 {
		place.Stack = named(g.module.trapError(err).Stack)
	}
	if function := g.instance.Waiting(); function != "" {
		place.Stack = append([]string{function}, place.Stack...)
	}
	return place
}

// pageSize is that of WebAssembly.
const pageSize = 64 << 10

// linearMemory is a guest's memory: one reservation of all that it may ever have; wazero sees the part that the guest
// has grown to.  It belongs to one instantiation.
type linearMemory struct {
	budget   *hostfuncs.Budget
	size     uint64 // charged to it
	spare    uint64 // of its maximum, which the guest does not get
	most     uint64 // that it gets
	refused  error  // why it did not grow when the guest last asked for more
	pinned   bool   // to a thread
	ticked   func() // is called when a metered guest leaves compiled code
	instance *hostfuncs.Instance
	region   *rdmacore.Memory // holds a reference for wazero until Free
	held     *rdmacore.Memory // holds a reference for the guest until release
	err      error            // why there is no reservation
}

// allocate makes the reservation; wazero calls it while it instantiates the module.
func (m *linearMemory) allocate(maximum uint64) {
	m.most = maximum - m.spare
	// A memory without any page still has an address.
	m.region, m.err = rdmacore.NewMemory(int(max(
		min(m.most, uint64(m.budget.Limits().Memory)/pageSize*pageSize), pageSize,
	)))
	if m.err != nil {
		return
	}
	m.region.Retain()
	m.held = m.region
}

// Reallocate gives the guest the first size bytes. It returns nil when that is more than the guest may have. The guest
// sees this as a memory.grow that fails.
//
// Each time a metered guest leaves compiled code, it requests more than it can get (wasm.Rewritten.SparePages) and the
// request fails. Other goroutines run then, also those of guests that wait for each other. Go's scheduler alone would
// let it compute for 10 ms.
func (m *linearMemory) Reallocate(size uint64) []byte {
	if size > m.most {
		m.ticked()
		if !m.pinned { // else its thread would be changed each time
			runtime.Gosched()
		}
		return nil
	}
	if m.region == nil {
		return nil
	}
	cost := hostfuncs.Cost{Memory: int64(size - m.size)}
	if m.refused = m.budget.Charge(cost); m.refused != nil {
		return nil
	}
	if size > uint64(m.region.Size()) {
		m.budget.Credit(cost)
		return nil
	}
	m.size = size
	m.instance.SetMemory(m.region, int(size))
	return m.region.Bytes()[:size:m.region.Size()]
}

// Free drops wazero's reference.  wazero calls it when the module is closed, perhaps more than once.
func (m *linearMemory) Free() {
	m.region.Release()
	m.region = nil
}

// release drops the guest's reference, and wazero's if it never came to Free it.
func (m *linearMemory) release() {
	m.Free()
	m.held.Release()
	m.held = nil
}

// pin locks the goroutine to a thread, and the thread to some CPUs; with none it does nothing.  The goroutine never
// unlocks the thread, which ends with it: no other goroutine may run on those CPUs by accident.
func pin(cpus []int) error {
	if len(cpus) == 0 {
		return nil
	}
	runtime.LockOSThread()
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("sched_setaffinity to CPUs %v: %w", cpus, err)
	}
	return nil
}
