package compile

import (
	"slices"
	"strings"
	"time"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

func (x *expander) stepList(steps []*ast.Step, s *scope) []*Step {
	compiled := make([]*Step, 0, len(steps))
	for _, step := range steps {
		if x.steps++; x.steps > maxSteps {
			if x.steps == maxSteps+1 {
				x.errors.Report(
					diag.TooManySteps, step.Key.Span(), "the fragments expand to more than %d steps", maxSteps,
				).
					WithHint("`repeat` does the same steps again without writing them down")
			}
			return compiled
		}
		compiled = append(compiled, x.step(step, s))
	}
	return compiled
}

func (x *expander) step(step *ast.Step, s *scope) *Step {
	if group := x.countedRole(step, s); group != nil {
		return x.eachInstance(step, group, s)
	}
	at := place{scope: s}
	result := &Step{Span: step.Key.Span(), IgnoreLeftovers: step.Leftovers != nil}
	if step.If != nil {
		result.If = x.truth("if", step.If, at)
	}
	if step.If != nil {
		x.facts.conditional++
		defer func() { x.facts.conditional-- }()
	}
	inner := s
	if step.Action == ast.Repeat && step.As != nil && x.checkName(step.As) {
		inner = s.inner()
		inner.add(step.As.Value, expression.Integer, nil)
	}
	if step.Name != nil && step.Action != ast.ForEach {
		result.Name = x.scalar(&verb.Argument{Name: "name", Type: verb.Text}, step.Name, place{scope: inner})
		result.Label = label(step.Name.Value)
	}
	result.Timeout = x.duration("timeout", step.Timeout, at)
	if step.Action.OfSteps() {
		result.Within = x.duration("within", step.Within, at)
	}
	for _, tag := range step.Tags {
		compiled := Tag{Name: tag.Key.Value}
		if tag.Value != nil {
			compiled.Value = x.scalar(&verb.Argument{Name: tag.Key.Value, Type: verb.Text}, tag.Value, at)
		}
		result.Tags = append(result.Tags, compiled)
	}
	result.XFail = x.xfail(step.XFail, s)
	defer x.enter(result)()
	if step.Took != nil {
		result.Took = &Took{
			Min: x.duration("min", step.Took.Get("min"), at), Max: x.duration("max", step.Took.Get("max"), at),
			Span: step.Took.Span(),
		}
	}
	switch step.Action {
	case ast.Block:
		result.Action = &Block{Steps: x.stepList(step.Do, s)}
	case ast.Repeat:
		repeat := x.pace(step, at)
		defer x.enterLoop(result.Label, repeat.StageNames())()
		x.rounds(repeat, step, inner)
		result.Action = repeat
	case ast.Parallel:
		result.Action = x.parallel(step, s)
	case ast.ForEach:
		result.Action = x.forEach(step, at)
		result.Name = nil // each round has it
	case ast.Use:
		result.Action = x.use(step, at)
	case ast.GuestAction:
		result.Action = x.executableStep(step, at, aGuest, ast.GuestActions)
	case ast.ProgramAction:
		result.Action = x.executableStep(step, at, aProgram, ast.ProgramActions)
	case ast.Barrier:
		result.Action = x.barrier(step, at)
	case ast.Call:
		result.Action = x.call(step, at)
	}
	return result
}

// truth compiles a condition; its expression needs no $( ).
func (d *decoder) truth(name string, node *syntax.Node, at place) *Value {
	argument := &verb.Argument{Name: name, Type: verb.Boolean}
	if node.Kind != syntax.Scalar || expression.Contains(node.Value) {
		return d.scalar(argument, node, at)
	}
	return d.expression(argument, node, expression.Piece{Text: node.Value, Expression: true}, at)
}

// maxRepeat is the largest count that can be meant.
const maxRepeat = 1_000_000_000

// fastestRepeat is the largest rate: of a nanosecond for each round.
const fastestRepeat = 1_000_000_000

// pace compiles what ends a repeat, and when its rounds are due.
func (x *expander) pace(step *ast.Step, at place) *Repeat {
	r := &Repeat{}
	count := func(name string, least, most int, node *syntax.Node) *Value {
		return x.scalar(&verb.Argument{Name: name, Type: verb.Integer, Min: int64(least), Max: int64(most)}, node, at)
	}
	ends := step.Body
	if ends.Kind == syntax.Scalar {
		r.Count = count("repeat", 0, maxRepeat, ends)
	}
	if times := ends.Get("times"); times != nil {
		r.Count = count("times", 0, maxRepeat, times)
	}
	r.For = x.duration("for", ends.Get("for"), at)
	if r.For != nil && r.Count == nil && ends.Get("until") == nil {
		if takes, known := r.For.Constant(); known {
			x.lasts(lasting{
				what: "the steps are repeated for", takes: takes.(time.Duration), span: r.For.Span, onClock: true,
			})
		}
	}
	r.Rate = x.perSecond("rate", ends.Get("rate"), at)
	x.rateStages(r, ends.Get("stages"), at)
	return r
}

// perSecond compiles the rate of a repeat, 10/s; nil for none.
func (x *expander) perSecond(name string, node *syntax.Node, at place) *Value {
	if node == nil {
		return nil
	}
	count := *node
	count.Value = strings.TrimSuffix(node.Value, "/s")
	if _, bad := parseNumber(count.Value); bad != nil && node.Kind == syntax.Scalar &&
		!expression.Contains(node.Value) {
		return x.refuse(
			diag.WrongType, node.Span(), "a rate is a number of rounds a second: 10/s", "%s is not a rate",
			quoted(node.Value),
		)
	}
	return x.scalar(&verb.Argument{Name: name, Type: verb.Integer, Min: 1, Max: fastestRepeat}, &count, at)
}

// stageLength compiles how long a stage takes, which is some time: one without a round would go unnoticed.
func (x *expander) stageLength(node *syntax.Node, at place) *Value {
	if node == nil {
		return nil
	}
	return x.scalar(&verb.Argument{Name: "for", Type: verb.Duration, Min: 1, Max: maxDuration}, node, at)
}

// rateStages compiles the stages of a repeat.
func (x *expander) rateStages(r *Repeat, node *syntax.Node, at place) {
	if node == nil || node.Kind != syntax.Sequence {
		return
	}
	var own []string
	for _, stage := range node.Items {
		name := ""
		if given := stage.Get("name"); given != nil {
			name = given.Value
		}
		own = append(own, name)
	}
	names, refusal := verb.NamesOfStages(own)
	if refusal != nil {
		x.errors.Report(diag.BadName, node.Span(), "%s", refusal.Message).WithHint("%s", refusal.Hint)
		return
	}
	takes, known := time.Duration(0), true
	for i, stage := range node.Items {
		r.Stages = append(r.Stages, RateStage{
			Name: names[i], For: x.stageLength(stage.Get("for"), at),
			Rate: x.perSecond("rate", stage.Get("rate"), at), To: x.perSecond("to", stage.Get("to"), at),
		})
		if each := r.Stages[i].For; each != nil {
			length, is := each.Constant()
			if known = known && is; is {
				takes += length.(time.Duration) // at most 256 of a year each
			}
		}
	}
	if known && r.Count == nil {
		x.lasts(lasting{
			what: "the stages of this repeat take", takes: takes, span: node.Span(), onClock: true,
		})
	}
}

// rounds compiles what a repeat does in each round.
func (x *expander) rounds(r *Repeat, step *ast.Step, inner *scope) {
	if step.As != nil {
		r.Counter = step.As.Value
	}
	r.Steps = x.stepList(step.Do, inner)
	if until := step.Body.Get("until"); until != nil {
		r.Until = x.truth("until", until, place{scope: inner}) // also of what the steps name
	}
	if r.Role, _ = roleOfAll("", r.Steps); r.Role != "" {
		r.All = appendAll(nil, r.Steps)
	}
}

// roleOfAll finds the one role of all steps, those in them included; all is false where there is none, or another than
// this one.  Steps with results in a list (as: x[$(i)]) do not count: the results are too many to be sent at once.
// Nor do faults, which each process notes as they are made.
func roleOfAll(role string, steps []*Step) (_ string, all bool) {
	for _, step := range steps {
		switch action := step.Action.(type) {
		case *Call:
			if action.Role == nil || action.Verb.Split || action.Verb.Measures || action.As.text != nil ||
				action.Verb.MakesFault() {
				return "", false
			}
			known, constant := action.Role.Constant()
			if name, is := known.(string); !constant || !is || role != "" && role != name {
				return "", false
			} else {
				role = name
			}
		case *Parallel:
			return "", false
		default:
			if role, all = roleOfAll(role, step.inner()); !all {
				return "", false
			}
		}
	}
	return role, true
}

// stepRole compiles `role` and checks that what plays it is of the right kind; name is "" when it is known only in the
// run.
func (x *expander) stepRole(step *ast.Step, at place, wanted executable, optional bool) (value *Value, name string) {
	if step.Role == nil {
		if !optional {
			roles := x.roleNames()
			hint := "role: " + strings.Join(roles, " or ")
			if len(hint) > 200 {
				hint = diag.ThereAre(roles)
			}
			if len(x.roles) == 0 {
				hint = "the file has no roles; define them under the key \"roles\""
			}
			x.errors.Report(
				diag.MissingRole, step.Key.Span(), "%s needs a role: who does it?", step.Key.Value,
			).WithHint(
				"%s", hint,
			)
		}
		return nil, ""
	}
	value = x.scalar(&verb.Argument{Name: "role", Type: verb.Text}, step.Role, at)
	if value == nil {
		return nil, ""
	}
	known, ok := value.Constant()
	if !ok {
		if group := x.groupOf(step.Role); group != nil {
			x.noteBranches(group.name)
		}
		return value, ""
	}
	name = known.(string)
	r := x.roles[name]
	x.noteBranches(name)
	if r != nil && r.group != nil {
		x.noteBranches(r.group.name)
	}
	switch {
	case r == nil:
		x.unknownRole(name, value.Span)
		return nil, ""
	case r.executable == wanted, optional && wanted == steps,
		r.executable == aProgram && step.Verb != nil && step.Verb.OrProgram:
	case wanted == steps:
		x.errors.Report(diag.WrongRole, value.Span, "%q is %s, which calls for itself", name, r.executable).
			WithHint("steps can start, run, wait for and stop it: %s: start", r.executable.does())
		return nil, ""
	default:
		x.errors.Report(diag.WrongRole, value.Span, "%q is not %s", name, wanted).
			WithHint("it has no %s in \"roles\"", wanted.declared())
		return nil, ""
	}
	return value, name
}

// roleOf compiles the role of a step, and is its place.
func (x *expander) roleOf(step *ast.Step, at place, wanted executable, optional bool) (*Value, place) {
	var role *Value
	role, at.role = x.stepRole(step, at, wanted, optional)
	at.anyRole = role != nil && at.role == ""
	return role, at
}

func (x *expander) call(step *ast.Step, at place) Action {
	call := &Call{Verb: step.Verb, span: step.Key.Span()}
	if step.Role != nil &&
		slices.ContainsFunc(step.Verb.Arguments, func(a verb.Argument) bool { return a.Type == verb.Instances }) {
		x.errors.Report(
			diag.WrongRole, step.Role.Span(), "a %s is a step of all instances of its own role, and of no other role",
			step.Key.Value,
		).
			WithHint("leave this role out")
	}
	wanted := steps
	if step.Verb.OfProgram {
		wanted = aProgram
	}
	call.Role, at = x.roleOf(step, at, wanted, step.Verb.Roleless)
	var named []verb.Result
	call.Arguments, named = x.arguments(step, at)
	call.None = x.expectsNothing(step, at)
	call.Any = x.expectsAnything(step, step.Verb)
	if !call.None && !call.Any {
		call.Expect = x.expectations(step, step.Verb, named, at)
	}
	x.checkStretch(call, at)
	x.note(step, call, at)
	x.asOf(step, call, named, at)
	return call
}

// asOf reads `as`, and notes what the call makes by that name.
func (x *expander) asOf(step *ast.Step, call *Call, named []verb.Result, at place) {
	switch {
	case step.As == nil:
		return
	case !call.Verb.Named:
		x.errors.Report(diag.NothingToName, step.Node.Key("as").Span(), "%s yields nothing to name", call.Verb.Name)
		return
	}
	if call.As = x.asName(step.As, at); call.As.Word == "" {
		return
	}
	x.addResult(step.As, at, call.As, x.resultType(call.Verb, named))
	if object := call.makes(); object != nil {
		x.timeline.add(object, at.role, call.As)
		if object.Type == verb.Endpoint {
			x.facts.portSpaces[endpointName{at.role, call.As.shown()}] = x.facts.portSpaceOf(call, at.role)
		}
	}
}

// makes is the kind of object that a step can make: wait_event makes an endpoint of connection requests only.
func (call *Call) makes() *verb.Object {
	if event := call.argument("type"); event != nil && call.Verb.Waits {
		if known, ok := event.Constant(); ok && known != "CONNECT_REQUEST" {
			return nil
		}
	}
	return call.Verb.Makes
}
