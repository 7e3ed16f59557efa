package guest

import (
	"context"
	"fmt"
)

// request is a call of one of a guest's functions, made by another goroutine than the guest's.
type request struct {
	function  string
	arguments []uint64
	answer    chan answer // with room for one
}

type answer struct {
	results []uint64
	err     error
}

// Call calls an exported function of the guest, on the guest's own goroutine: the guest takes calls while it waits
// at a barrier, as a program is in no state to be entered while it runs.  Arguments and results are as wazero
// has them, an i32 in the lower half.  A function that traps or exits ends the guest.
//
// The error is ctx's when the guest comes to no barrier, or the call to no end, before ctx ends.
func (g *Guest) Call(ctx context.Context, function string, arguments ...uint64) ([]uint64, error) {
	r := &request{function, arguments, make(chan answer, 1)}
	select {
	case g.calls <- r:
	case <-g.done:
		return nil, fmt.Errorf("call %s of guest %s: the guest has ended", function, g.name)
	case <-ctx.Done():
		return nil, fmt.Errorf("call %s of guest %s, which takes calls while it waits at a barrier: %w", function, g.name, ctx.Err())
	}
	select {
	case got := <-r.answer:
		return got.results, got.err
	case <-ctx.Done():
		return nil, fmt.Errorf("call %s of guest %s: it does not return: %w", function, g.name, ctx.Err())
	}
}

// wait is the guest at a barrier, on its own goroutine.
func (g *Guest) wait(ctx context.Context, barrier string) error {
	opened := make(chan error, 1)
	go func() { opened <- g.config.Barrier(ctx, barrier) }()
	for {
		select {
		case err := <-opened:
			return err
		case r := <-g.calls:
			g.serve(r)
		}
	}
}

// serve makes one call.
func (g *Guest) serve(r *request) {
	function := g.running.ExportedFunction(r.function)
	if function == nil {
		r.answer <- answer{err: fmt.Errorf("guest %s exports no function %q", g.name, r.function)}
		return
	}
	if want := len(function.Definition().ParamTypes()); want != len(r.arguments) {
		r.answer <- answer{err: fmt.Errorf("function %q of guest %s takes %d arguments, not %d", r.function, g.name, want, len(r.arguments))}
		return
	}
	clock := g.config.Provider.Clock()
	clock.Enter() // the barrier has counted it out
	defer clock.Leave()
	results, err := function.Call(g.instance.Context(g.life), r.arguments...)
	if err == nil {
		r.answer <- answer{results: results}
		return
	}
	r.answer <- answer{err: trapError(err)}
	panic(err) // through the guest's own code, which ends with it
}
