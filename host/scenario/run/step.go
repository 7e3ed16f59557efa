package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/lab"
	"rdmarun/host/scenario/plan"
)

// stepError is a step that failed, as the innermost step saw it.
type stepError struct {
	span   diag.Span
	role   string
	action string
	path   []string
	err    error
}

func (e *stepError) Error() string { return e.action + ": " + e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }

// caseTimeout is the cause of a context that the time of a case has ended.
type caseTimeout struct{ limit time.Duration }

func (e *caseTimeout) Error() string { return fmt.Sprintf("the case took longer than %s", e.limit) }

// stepTimeout is the cause of a context that the time of a step has ended.
type stepTimeout struct{ limit time.Duration }

func (e *stepTimeout) Error() string {
	return fmt.Sprintf("the step took longer than its timeout of %s", e.limit)
}

func (r *caseRun) list(ctx context.Context, steps []*plan.Step) error {
	for _, step := range steps {
		if err := r.step(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// step runs one step with what stands beside its action.
func (r *caseRun) step(ctx context.Context, step *plan.Step) error {
	if ctx.Err() != nil {
		return r.failed(step, "", "step", context.Cause(ctx))
	}
	if step.If != nil {
		wanted, err := step.If.Get(r.env)
		if err != nil {
			return r.failed(step, "", "if", err)
		}
		if wanted == false {
			return nil
		}
	}
	if step.Tags != nil || step.XFail != nil {
		return r.marked(ctx, step)
	}
	return r.timed(ctx, step)
}

// timed runs a step within its limits of time.
func (r *caseRun) timed(ctx context.Context, step *plan.Step) error {
	if step.Timeout == nil && step.Took == nil {
		return r.named(ctx, step)
	}
	if step.Timeout != nil {
		known, err := step.Timeout.Get(r.env)
		if err != nil {
			return r.failed(step, "", "timeout", err)
		}
		limit := r.config.stretched(known.(time.Duration))
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, &stepTimeout{limit})
		defer cancel()
	}
	clock := r.lab.Clock()
	begin := clock.Now()
	if err := r.named(ctx, step); err != nil {
		return err
	}
	return r.checkTook(step, clock.Now()-begin)
}

// named runs the action with the step's name on the path.
func (r *caseRun) named(ctx context.Context, step *plan.Step) error {
	if repeat, ok := step.Action.(*plan.Repeat); ok {
		return r.repeat(ctx, step, repeat) // names each round anew
	}
	if step.Name == nil {
		return r.action(ctx, step)
	}
	if err := r.pushName(step); err != nil {
		return err
	}
	err := r.action(ctx, step)
	r.path = r.path[:len(r.path)-1]
	return err
}

func (r *caseRun) pushName(step *plan.Step) error {
	name, err := step.Name.Get(r.env)
	if err != nil {
		return r.failed(step, "", "name", err)
	}
	r.path = append(r.path, name.(string))
	return nil
}

func (r *caseRun) action(ctx context.Context, step *plan.Step) error {
	switch action := step.Action.(type) {
	case *plan.Call:
		return r.call(ctx, step, action)
	case *plan.Block:
		return r.list(ctx, action.Steps)
	case *plan.Use:
		return r.use(ctx, step, action)
	case *plan.Parallel:
		return r.parallel(ctx, step, action)
	case *plan.Guest:
		return r.guest(ctx, step, action)
	case *plan.Barrier:
		return r.barrier(ctx, step, action)
	}
	panic(fmt.Sprintf("no action %T", step.Action))
}

func (r *caseRun) repeat(ctx context.Context, step *plan.Step, repeat *plan.Repeat) error {
	count, err := repeat.Count.Get(r.env)
	if err != nil {
		return r.failed(step, "", "repeat", err)
	}
	restore := r.shadow(repeat.Counter)
	defer restore()
	timed := step.Label != "" && r.loops.enter(step.Label, r.tags)
	for i := range count.(int) {
		if repeat.Counter != "" {
			r.env[repeat.Counter] = i
		}
		if step.Name != nil {
			if err := r.pushName(step); err != nil {
				return err
			}
		}
		begin := time.Now()
		err := r.list(ctx, repeat.Steps)
		if step.Name != nil {
			r.path = r.path[:len(r.path)-1]
		}
		if err != nil {
			if timed {
				r.loops.abandon()
			}
			return err
		}
		if timed {
			r.loops.round(time.Since(begin))
		}
		if len(repeat.Steps) == 0 && ctx.Err() != nil {
			return r.failed(step, "", "repeat", context.Cause(ctx))
		}
	}
	if timed {
		r.loops.leave()
	}
	return nil
}

// shadow remembers what a name means around a block and returns what brings it back.
func (r *caseRun) shadow(name string) (restore func()) {
	if name == "" {
		return func() {}
	}
	before, had := r.env[name]
	return func() {
		if had {
			r.env[name] = before
		} else {
			delete(r.env, name)
		}
	}
}

func (r *caseRun) use(ctx context.Context, step *plan.Step, use *plan.Use) error {
	values := make([]any, len(use.With))
	for i, parameter := range use.With {
		value, err := parameter.Value.Get(r.env)
		if err != nil {
			return r.failed(step, "", "use "+use.Fragment, err)
		}
		values[i] = value
	}
	for i, parameter := range use.With {
		defer r.shadow(parameter.Name)()
		r.env[parameter.Name] = values[i]
	}
	return r.list(ctx, use.Steps)
}

func (r *caseRun) checkTook(step *plan.Step, took time.Duration) error {
	if step.Took == nil {
		return nil
	}
	for _, bound := range []struct {
		value *plan.Value
		words string
		holds func(limit time.Duration) bool
	}{
		{step.Took.Min, "at least ", func(limit time.Duration) bool { return took >= limit }},
		{step.Took.Max, "at most ", func(limit time.Duration) bool { return took <= r.onClock(limit) }},
	} {
		if bound.value == nil {
			continue
		}
		limit, err := bound.value.Get(r.env)
		if err != nil {
			return r.failed(step, "", "took", err)
		}
		if !bound.holds(limit.(time.Duration)) {
			return &stepError{span: step.Took.Span, action: "took", path: r.pathCopy(), err: &lab.Failure{
				What: "wrong time", Expected: bound.words + limit.(time.Duration).String() + r.scaleNote(), Got: rounded(took),
			}}
		}
	}
	return nil
}

// rounded prints a time without digits that mean nothing.
func rounded(d time.Duration) string {
	switch {
	case d > time.Second:
		d = d.Round(time.Millisecond)
	case d > time.Millisecond:
		d = d.Round(time.Microsecond)
	}
	return d.String()
}

// failed makes the error of a step.  The innermost one stays.
func (r *caseRun) failed(step *plan.Step, role, action string, err error) error {
	var inner *stepError
	if errors.As(err, &inner) {
		return inner
	}
	return &stepError{span: step.Span, role: role, action: action, path: r.pathCopy(), err: err}
}

func (r *caseRun) pathCopy() []string { return append([]string(nil), r.path...) }
