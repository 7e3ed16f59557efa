package exec

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/expect"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/skip"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/timeline"
	"rdmarun/host/scenario/verb"
)

func (r *caseRun) list(ctx context.Context, steps []*compile.Step) error {
	for _, step := range steps {
		if err := r.step(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// step runs a step.  Most steps are only an action; other keys of a step wrap the action.
func (r *caseRun) step(ctx context.Context, step *compile.Step) error {
	if ctx.Err() != nil {
		return r.notBegun(step, context.Cause(ctx))
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
	if call, is := step.Action.(*compile.Call); is {
		if divided, err := r.peers.step(ctx, r, step, call); divided {
			return err
		}
	}
	return r.decorated(ctx, step)
}

// notBegun returns the failure of a step that the end of the run comes before.  It has the words of a step that the end
// cuts off: on another host of a lab, the same step may have begun.
func (r *caseRun) notBegun(step *compile.Step, cause error) error {
	call, is := step.Action.(*compile.Call)
	if !is {
		return r.failed(step, "", "step", cause)
	}
	role, _, _ := r.enterRole(call.Role) // a step of an unknown role does not begin either
	return r.failed(step, role, call.Verb.Name, cause)
}

// decorated runs a step with the keys around its action.
func (r *caseRun) decorated(ctx context.Context, step *compile.Step) error {
	switch {
	case step.Tags != nil || step.XFail != nil:
		return r.marked(ctx, step)
	case step.Timeout != nil || step.Took != nil || step.Within != nil:
		return r.timed(ctx, step)
	}
	return r.action(ctx, step)
}

// action runs the action of a step, with the step's name on the path.
func (r *caseRun) action(ctx context.Context, step *compile.Step) error {
	if repeat, ok := step.Action.(*compile.Repeat); ok {
		return r.repeat(ctx, step, repeat) // each round has its own name
	}
	if step.Name != nil {
		if err := r.pushName(step); err != nil {
			return err
		}
		defer r.popName()
	}
	switch action := step.Action.(type) {
	case *compile.Call:
		return r.call(ctx, step, action)
	case *compile.Block:
		if action.Rounds {
			running := r.progress.Begin("round", len(action.Steps))
			defer r.progress.End(running)
			return running.Rounds(func(i int) error { return r.step(ctx, action.Steps[i]) })
		}
		return r.list(ctx, action.Steps)
	case *compile.Use:
		return r.use(ctx, step, action)
	case *compile.Parallel:
		return r.parallel(ctx, step, action)
	}
	panic(fmt.Sprintf("no action %T", step.Action))
}

func (r *caseRun) pushName(step *compile.Step) error {
	name, err := step.Name.Get(r.env)
	if err != nil {
		return r.failed(step, "", "name", err)
	}
	r.path = append(r.path, name.(string))
	return nil
}

func (r *caseRun) popName() { r.path = r.path[:len(r.path)-1] }

// timed runs a step within its time limits.
func (r *caseRun) timed(ctx context.Context, step *compile.Step) error {
	if step.Timeout != nil {
		known, err := step.Timeout.Get(r.env)
		if err != nil {
			return r.failed(step, "", "timeout", err)
		}
		limit := r.config.stretched(known.(time.Duration))
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, &overtime{
			"the step took longer than its timeout of " + quantity.Time(limit), true,
		})
		defer cancel()
	}
	clock := r.testbed.Clock()
	begin := clock.Now()
	if err := r.bounded(ctx, step); err != nil {
		return err
	}
	return r.checkTook(step, clock.Now()-begin)
}

// bounded runs a block within its limit on the provider's clock.
func (r *caseRun) bounded(ctx context.Context, step *compile.Step) error {
	if step.Within == nil {
		return r.action(ctx, step)
	}
	known, err := step.Within.Get(r.env)
	if err != nil {
		return r.failed(step, "", "within", err)
	}
	limit := r.onClock(known.(time.Duration))
	inside, cancel := r.testbed.Clock().WithTimeout(ctx, limit)
	defer cancel()
	err = r.action(inside, step)
	var cut *stepError
	if err == nil || ctx.Err() != nil || !errors.As(err, &cut) || !errors.Is(cut.err, context.DeadlineExceeded) {
		return err
	}
	late := *cut
	late.err = &testbed.Failure{
		What: "the time of the steps is over", Expected: "their end within " + quantity.Time(limit) + r.scaleNote(),
		Got: fmt.Sprintf("it was cut off in this step; the limit is in line %d", step.Span.Line),
	}
	return &late
}

func (r *caseRun) checkTook(step *compile.Step, took time.Duration) error {
	if step.Took == nil {
		return nil
	}
	for _, bound := range []*compile.Value{step.Took.Min, step.Took.Max} {
		if bound == nil {
			continue
		}
		value, err := bound.Get(r.env)
		if err != nil {
			return r.failed(step, "", "took", err)
		}
		limit := value.(time.Duration)
		words, holds := "at least ", took >= limit
		if bound == step.Took.Max {
			words, holds = "at most ", took <= r.onClock(limit)
		}
		if !holds {
			late := r.failed(step, "", "took", &testbed.Failure{
				What: "wrong time", Expected: words + quantity.Time(limit) + r.scaleNote(), Got: quantity.Rounded(took),
			})
			late.span = step.Took.Span
			return late
		}
	}
	return nil
}

// marked runs a step that has tags or is known to fail.
func (r *caseRun) marked(ctx context.Context, step *compile.Step) error {
	before := r.tags
	defer func() { r.tags = before }()
	tags, err := r.tagsIn(step)
	if err != nil {
		return r.failed(step, "", "tags", err)
	}
	r.tags = tags
	if step.XFail == nil {
		return r.timed(ctx, step)
	}
	return r.expectedToFail(ctx, step)
}

// tagsIn returns the tags of a step: its own and those of the steps around it.
func (r *caseRun) tagsIn(step *compile.Step) (map[string]string, error) {
	tags := make(map[string]string, len(r.tags)+len(step.Tags))
	maps.Copy(tags, r.tags)
	for _, tag := range step.Tags {
		tags[tag.Name] = ""
		if tag.Value == nil {
			continue
		}
		value, err := tag.Value.Get(r.env)
		if err != nil {
			return nil, err
		}
		tags[tag.Name] = value.(string)
	}
	return tags, nil
}

// expectedToFail runs a step that is known to fail: failure is expected, success is not. An xfail excuses failures of
// the tested behaviour only. It does not excuse the end of the case's time, a missing device, or a value that cannot
// be computed.
func (r *caseRun) expectedToFail(ctx context.Context, step *compile.Step) error {
	holds, err := r.holds(step.XFail.When, nil)
	if err != nil {
		return r.failed(step, "", "xfail", err)
	}
	if !holds {
		return r.timed(ctx, step)
	}
	before, depth := r.known, len(r.path)
	r.known = step.XFail.Reason
	err = r.timed(ctx, step)
	r.known, r.path = before, r.path[:depth]
	var failure *testbed.Failure
	var late *overtime
	switch {
	case err == nil:
		return r.failed(step, "", "xfail", &testbed.Failure{
			What: "it passed, and xfail says that it fails", Hint: "remove the xfail: " + step.XFail.Reason,
		})
	case ctx.Err() == nil && (errors.As(err, &failure) || errors.As(err, &late) && late.ofStep):
		described := r.describe(err)
		unlike := unlike(step.XFail, described)
		if unlike == "" {
			r.knownFailure(step, described)
			return nil
		}
		if failed := (*stepError)(nil); errors.As(err, &failed) {
			failed.known = unlike
		}
	}
	return err
}

// knownFailure keeps a failure that an xfail excuses, for the end of the case.
func (r *caseRun) knownFailure(step *compile.Step, f record.Failure) {
	if !r.plays(f.Role) {
		return // the process of the role counts it
	}
	known := record.KnownStep{
		Line: step.Span.Line, Column: step.Span.Column, Role: f.Role, Action: f.Action, What: f.What,
		Reason: step.XFail.Reason, Count: 1,
	}
	if file := step.Span.File(); file != r.scenario.File {
		known.File = file
	}
	r.tallies.Add(&record.Tallies{Known: []record.KnownStep{known}})
}

// plays reports whether a role is this process's; for "" and unknown roles, whether the first role is.
func (r *caseRun) plays(role string) bool {
	if role == "" {
		return r.roster.decider == "" && !r.config.IsController
	}
	return !r.isElsewhere(role)
}

// unlike is the hint of a failure that differs from the one an xfail expects; "" for the expected one.
func unlike(known *compile.XFail, f record.Failure) string {
	difference := known.Unlike(compile.FailureFields{Action: f.Action, What: f.What, Got: f.Got})
	if difference == "" {
		return ""
	}
	return "xfail expects another failure (" + difference + "): " + known.Reason
}

// holds reports whether a condition holds, with additional names.  No condition holds.
func (r *caseRun) holds(when *compile.Requirement, more expression.Env) (bool, error) {
	if when == nil {
		return true, nil
	}
	env, err := skip.Surroundings(r.config.Providers, r.testCase, when)
	if err != nil {
		return false, &testbed.EnvironmentError{What: "look at the surroundings", Err: err}
	}
	maps.Copy(env, more)
	for name, value := range r.env {
		if _, taken := env[name]; !taken {
			env[name] = value // a fragment's parameter, the value of a for_each
		}
	}
	return when.Holds(env)
}

// call runs a verb and compares its result with the expectations.
func (r *caseRun) call(ctx context.Context, step *compile.Step, action *compile.Call) error {
	r.steps++
	r.ended.Add(1)
	name, role, err := r.enterRole(action.Role)
	if err != nil {
		return r.failed(step, name, action.Verb.Name, err)
	}
	if err := r.allowed(role, action.Verb); err != nil {
		return r.failed(step, name, action.Verb.Name, err)
	}
	arguments, err := r.evaluate(r.history.Spare(), action.Arguments)
	if err != nil {
		return r.failed(step, name, action.Verb.Name, err)
	}
	call := &r.running
	*call = verb.Call{Verb: action.Verb, Testbed: r.testbed, Role: role, Arguments: arguments}
	if !action.None { // `none` asserts that nothing comes in exactly this time
		r.stretchWithin(call)
	}
	r.peers.share(r, call, action)
	if action.Verb.Measures {
		running := r.progress.Begin("", 0)
		defer r.progress.End(running)
		call.Progress = func(what string, at, of int) { r.progress.Part(running, what, at, of) }
		r.measure(step, call)
		r.mesh(step, call)
	} else if action.Verb.OfProgram {
		call.Measured = func(found []*record.Measure) { r.measured(step, found) }
	}
	m := timeline.Moment{At: r.now(), Role: name, Step: step, Verb: action.Verb, Arguments: arguments}
	m.Number = r.packets.Begin(step, role, action.Verb.Name)
	if step.IgnoreLeftovers {
		r.ignoreLeftovers(call) // the step may destroy the endpoint
	}
	m.Returned = action.Verb.Run(ctx, call)
	m.Took = r.now().Since(m.At)
	r.packets.End(role)
	outcome := &call.Outcome
	if ctx.Err() != nil && m.Returned != nil {
		m.Err = context.Cause(ctx)
	} else {
		m.Err = expect.Check(r.env, action, outcome, m.Returned)
	}
	if m.Err != nil && ctx.Err() == nil && testbed.OutOfFiles(m.Returned) {
		// The call could not give a result, expected or not.
		m.Err = &testbed.EnvironmentError{What: action.Verb.Name, Err: m.Returned}
	}
	if m.Err == nil {
		for _, buffer := range outcome.Buffers {
			r.refresh(buffer)
		}
		m.Err = r.name(action.As, name, action.Verb, outcome, m.Took)
	}
	if step.IgnoreLeftovers {
		r.ignoreLeftovers(call)
	}
	m.Fields, m.Outcome = outcome.Fields, outcome.Summary
	return r.conclude(&m)
}

// conclude adds an action that has run to the history and the records.  It returns the step's error.
func (r *caseRun) conclude(m *timeline.Moment) error {
	r.history.Add(*m)
	if r.wantSteps {
		r.writeStep(m)
	}
	if m.Err == nil {
		return nil
	}
	return r.failed(m.Step, m.Role, m.Verb.Name, m.Err)
}

// writeStep writes the record of an action.
func (r *caseRun) writeStep(m *timeline.Moment) {
	step := m.Record(r.history.Virtual)
	step.Tags, step.XFail, step.Used = r.tags, r.known, r.used()
	if rest, failed := strings.CutPrefix(step.Outcome, "FAILED: "); failed && r.known != "" {
		step.Outcome = "XFAILED: " + rest
	}
	if file := m.Step.Span.File(); file != r.scenario.File {
		step.File = file
	}
	step.Packets, step.MorePackets = r.packets.Take(m.Number)
	r.write(record.Record{Kind: record.StepEnd, Step: step, Common: r.common})
}

// enterRole returns the role of a step; nil for none.
func (r *caseRun) enterRole(value *compile.Value) (name string, role *testbed.Role, err error) {
	if value == nil {
		return "", nil, nil
	}
	known, err := value.Get(r.env)
	if err != nil {
		return "", nil, err
	}
	name = known.(string)
	if role, err = r.testbed.Role(name); err == nil {
		r.enter(name, role.Index)
	}
	return name, role, err
}

// enter makes the results of an instance of a counted role visible to expressions.
func (r *caseRun) enter(name string, index int) {
	if own := r.owned[name]; own != nil {
		maps.Copy(r.env, own)
		r.env["index"] = index
	}
}

// evaluate computes arguments; room may be used for the list.
func (r *caseRun) evaluate(room []any, values []*compile.Value) ([]any, error) {
	arguments := slices.Grow(room[:0], len(values))[:len(values)]
	clear(arguments)
	for i, value := range values {
		if value == nil {
			continue
		}
		var err error
		if arguments[i], err = value.Get(r.env); err != nil {
			return nil, err
		}
	}
	return arguments, nil
}

// name gives the object and the result of a step the name in `as`.
func (r *caseRun) name(
	as compile.Name, role string, v *verb.Verb, outcome *verb.Outcome, took timeline.Instant,
) error {
	if as.Word == "" {
		return nil
	}
	name, index, err := as.Get(r.env)
	if err != nil {
		return err
	}
	if outcome.Made != nil {
		outcome.Made.Bind(name)
	}
	value := outcome.Record
	if value == nil {
		value = make(map[string]any, len(outcome.Fields))
		for i, field := range outcome.Fields {
			value[v.Results[i].Name] = field
		}
	}
	r.bind(role, as.Word, index, value, took)
	return nil
}

func (r *caseRun) ignoreLeftovers(call *verb.Call) {
	made, _ := call.Outcome.Made.(*testbed.Endpoint)
	for _, endpoint := range []*testbed.Endpoint{made, call.Endpoint()} {
		if endpoint != nil {
			r.position.ignore(endpoint.Ignore())
		}
	}
}
