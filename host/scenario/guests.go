package scenario

import (
	"context"
	"errors"
	"io/fs"
	"sync"

	"rdmarun/host/guest"
	"rdmarun/host/guest/wasm"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/testbed"
)

// guests starts the guests of all cases of a run with one runtime.  It is made when the first guest starts: most scenarios
// have none.
type guests struct {
	config  guest.RuntimeConfig
	once    sync.Once
	runtime *guest.Runtime
	err     error
}

// Close ends the runtime once every guest has ended.
func (g *guests) Close() error {
	g.once.Do(func() { g.err = errors.New("closed") })
	if g.runtime == nil {
		return nil
	}
	return g.runtime.Close(context.Background())
}

// Start compiles the module, from the cache if it can, and starts it.
func (g *guests) Start(ctx context.Context, path string, config guest.Config) (testbed.RunningGuest, error) {
	g.once.Do(func() { g.runtime, g.err = guest.New(context.WithoutCancel(ctx), g.config) })
	if g.err != nil {
		return nil, &testbed.EnvironmentError{What: "the guest runtime", Err: g.err}
	}
	compiling, began, cancel := config.Limits.Compiling(ctx)
	defer cancel()
	module, err := g.runtime.Compile(compiling, path)
	switch {
	case testbed.OutOfFiles(err):
		return nil, &testbed.EnvironmentError{What: "the guest's module", Err: err}
	case errors.Is(err, fs.ErrNotExist):
		return nil, &testbed.Failure{
			What: "the guest's module cannot be used", Got: err.Error(), Hint: "`make guests` builds the guests that come with rdmarun",
		}
	case err != nil:
		return nil, &testbed.Failure{What: "the guest's module cannot be used", Got: err.Error()}
	}
	config.Began = began
	started, err := g.runtime.Start(ctx, module, config)
	if err != nil {
		return nil, &testbed.Failure{What: "the guest cannot be started", Got: err.Error()}
	}
	return started, nil
}

// inspectModule lists the functions of a guest's module.
func inspectModule(path string) (map[string]compile.Signature, error) {
	facts, err := guest.Inspect(path)
	if err != nil {
		return nil, err
	}
	functions := make(map[string]compile.Signature)
	for _, export := range facts.Exports {
		if export.Kind == wasm.KindFunction {
			functions[export.Name] = compile.Signature(export.Signature)
		}
	}
	return functions, nil
}
