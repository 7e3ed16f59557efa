package guest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"rdmarun/hostfuncs"
)

// Runtime compiles and runs guests.  It may be used by any number of goroutines.
type Runtime struct {
	mode    InterruptMode
	cache   *guestCache
	plain   wazero.CompilationCache // in memory only
	serials atomic.Uint32           // of guests

	// Who compiles has a place in it, and who closes: wazero's cache on disk must not be asked for one module by two
	// goroutines (wazero #2547), and two processors are better spent on one compilation anyway.  What follows is
	// touched only there.
	compiling chan struct{}
	engines   map[engineKind]wazero.Runtime
	modules   map[string]*Module // by content
	exports   hostExports
}

// New makes a runtime.  The caller closes it, after its last guest has ended.
func New(ctx context.Context, config RuntimeConfig) (*Runtime, error) {
	r := &Runtime{
		mode:      config.Interrupt,
		cache:     openGuestCache(config.CacheDir, config.Warn),
		plain:     wazero.NewCompilationCache(),
		compiling: make(chan struct{}, 1),
		engines:   make(map[engineKind]wazero.Runtime),
		modules:   make(map[string]*Module),
	}
	if r.mode == InterruptMetered && !compiles() {
		// wazero's interpreter is preemptible as any Go code is, and looks at contexts for nearly nothing.
		r.mode = InterruptContext
	}
	if _, err := r.engine(ctx, engineKind{looks: r.mode == InterruptContext}); err != nil {
		return nil, errors.Join(err, r.Close(ctx))
	}
	return r, nil
}

// coreFeatures are WebAssembly 2.0 and atomic instructions, with which a guest in C reads what a peer writes.
const coreFeatures = api.CoreFeaturesV2 | experimental.CoreFeaturesThreads

// compiles tells whether wazero compiles here; elsewhere it interprets.
func compiles() bool { return runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64" }

// engineKind tells the wazero runtimes apart: those that look at contexts themselves, and those that keep nothing,
// for when the cache fails.
type engineKind struct{ looks, uncached bool }

// engine is the wazero runtime of a kind.  The caller has the place of who compiles, or nobody else knows the runtime
// yet.
func (r *Runtime) engine(ctx context.Context, kind engineKind) (wazero.Runtime, error) {
	if engine, ok := r.engines[kind]; ok {
		return engine, nil
	}
	cache := r.cache.wazero
	if kind.uncached {
		cache = r.plain
	}
	config := wazero.NewRuntimeConfig().WithCompilationCache(cache).WithCloseOnContextDone(kind.looks).
		WithCoreFeatures(coreFeatures)
	engine := wazero.NewRuntimeWithConfig(ctx, config)
	r.engines[kind] = engine
	wasi, err := newWASI(engine).Compile(ctx)
	if err != nil {
		return nil, fmt.Errorf("prepare WASI: %w", err)
	}
	if _, err := engine.InstantiateModule(ctx, wasi, wazero.NewModuleConfig()); err != nil {
		return nil, fmt.Errorf("prepare WASI: %w", err)
	}
	if err := hostfuncs.Instantiate(ctx, engine); err != nil {
		return nil, fmt.Errorf("prepare the host functions: %w", err)
	}
	r.exports = exportsOf(wasi)
	return engine, nil
}

// Close frees everything the runtime has compiled.  Guests must have ended.
func (r *Runtime) Close(ctx context.Context) error {
	r.compiling <- struct{}{} // a compilation that was given up comes to the end of its function first
	defer func() { <-r.compiling }()
	var errs []error
	for _, engine := range r.engines {
		errs = append(errs, engine.Close(ctx))
	}
	clear(r.engines)
	clear(r.modules)
	r.cache.close()
	return errors.Join(append(errs, r.cache.wazero.Close(ctx), r.plain.Close(ctx))...)
}
