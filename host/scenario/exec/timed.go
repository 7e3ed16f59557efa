package exec

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/testbed"
)

// timed runs a step within its limits of time.
func (r *caseRun) timed(ctx context.Context, step *compile.Step) error {
	if step.Timeout == nil && step.Took == nil && step.Within == nil {
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
	if err := r.bounded(ctx, step); err != nil {
		return err
	}
	return r.checkTook(step, clock.Now()-begin)
}

// bounded runs a step of steps within its limit on the provider's clock.
func (r *caseRun) bounded(ctx context.Context, step *compile.Step) error {
	if step.Within == nil {
		return r.named(ctx, step)
	}
	limit, err := r.within(step.Within, 0)
	if err != nil {
		return r.failed(step, "", "within", err)
	}
	inside, cancel := r.lab.Clock().WithTimeout(ctx, limit)
	defer cancel()
	err = r.named(inside, step)
	var cut *stepError
	if err == nil || ctx.Err() != nil || !errors.As(err, &cut) || !errors.Is(cut.err, context.DeadlineExceeded) {
		return err
	}
	late := *cut
	late.err = &testbed.Failure{
		What: "the time of the steps is over", Expected: "their end within " + quantity.Time(limit) + r.scaleNote(),
		Got: fmt.Sprintf("it was cut off in this step; the limit stands in line %d", step.Span.Line),
	}
	return &late
}

func (r *caseRun) checkTook(step *compile.Step, took time.Duration) error {
	if step.Took == nil {
		return nil
	}
	for _, bound := range []struct {
		value *compile.Value
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
			return &stepError{span: step.Took.Span, action: "took", path: r.pathCopy(), used: r.used(), err: &testbed.Failure{
				What: "wrong time", Expected: bound.words + quantity.Time(limit.(time.Duration)) + r.scaleNote(), Got: rounded(took),
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
	return quantity.Time(d)
}
