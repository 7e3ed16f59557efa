package compile

import (
	"cmp"
	"slices"
	"strings"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
)

// indexName is the number of the instance in a step of a counted role.
const indexName = "index"

// countedRole is the counted role that a step names as a whole, so that all its instances do the step; nil for any
// other step.
func (x *expander) countedRole(step *ast.Step, s *scope) *role { return x.countedNamed(step.Role, s) }

// countedNamed is the counted role that a node names as a whole; nil for any other.
func (x *expander) countedNamed(node *syntax.Node, s *scope) *role {
	if !x.counted || node == nil || node.Kind != syntax.Scalar {
		return nil
	}
	name := node.Value
	if expression.Contains(name) {
		quiet := *x.decoder
		quiet.errors = &diag.List{} // errors are reported when the step itself is compiled
		value := quiet.scalar(&verb.Argument{Name: "role", Type: verb.Text}, node, place{scope: s})
		if value == nil {
			return nil
		}
		known, _ := value.Constant()
		name, _ = known.(string)
	}
	if r := x.roles[name]; r != nil && r.instances != nil {
		return r
	}
	return nil
}

// eachInstance compiles a step once for each instance, one after another.  All guests and programs start before the
// first is waited for: they may need each other.
func (x *expander) eachInstance(step *ast.Step, group *role, s *scope) *Step {
	block := &Block{}
	x.errors.OfCopies(func() {
		for _, phase := range phases(step) {
			for i := range group.instances {
				block.Steps = append(block.Steps, x.instanceStep(phase, phase.Role, group, i, s))
			}
		}
	})
	return &Step{Span: step.Key.Span(), Action: block}
}

// phases are the step itself, but of `guest: run` and `program: run` first the start and then the wait.
func phases(step *ast.Step) []*ast.Step {
	if step.Action != ast.GuestAction && step.Action != ast.ProgramAction || step.Body.Value != "run" {
		return []*ast.Step{step}
	}
	start, wait := *step, *step
	begin, end := *step.Body, *step.Body
	begin.Value, end.Value = "start", "wait"
	start.Body, wait.Body = &begin, &end
	start.AnyResult = false
	start.Expect, start.As, start.Within, start.Took, start.XFail = nil, nil, nil, nil, nil
	wait.Args = nil
	return []*ast.Step{&start, &wait}
}

// instanceStep compiles a step of a counted role, which written names, for one instance; $index is its number.
func (x *expander) instanceStep(step *ast.Step, written *syntax.Node, group *role, index int, s *scope) *Step {
	role := *written
	role.Value = group.instances[index].name
	use := &Use{With: []Parameter{{indexName, constant(index, written.Span())}}}
	round := &Step{Span: step.Key.Span(), Action: use}
	if s.find(indexName).kind != nil {
		x.errors.Report(
			diag.NameTaken, written.Span(),
			"%q is the number of the instance here, and something else is called so, too", indexName,
		).
			WithHint("rename the parameter or counter around the step")
		return round
	}
	inner := s.inner()
	inner.add(indexName, expression.Integer, index)
	use.Steps = x.stepList([]*ast.Step{step.By(&role)}, inner)
	return round
}

// part is what one branch of a parallel step does.
type part struct {
	step    *ast.Step
	compile func() []*Step
}

// branchesOf are the branches of a parallel step. Each instance of a counted role is one, with a step or with steps
// that all are of that role.
func (x *expander) branchesOf(steps []*ast.Step, s *scope) []part {
	var parts []part
	for _, step := range steps {
		written := step.Role
		if step.Shared != nil && step.IsOf(step.Shared) {
			written = step.Shared
		}
		group := x.countedNamed(written, s)
		if group == nil {
			parts = append(parts, part{step, func() []*Step { return x.stepList([]*ast.Step{step}, s) }})
			continue
		}
		for i := range group.instances {
			parts = append(parts, part{step, func() (steps []*Step) {
				x.errors.OfCopies(func() { steps = append(steps, x.instanceStep(step, written, group, i, s)) })
				return steps
			}})
		}
	}
	return parts
}

// groupOf is the counted role in a text such as client[$(i)], which names an instance; nil for other texts, and for
// none.
func (rs *resolver) groupOf(node *syntax.Node) *role {
	if node == nil {
		return nil
	}
	pieces, _ := expression.Scan(node.Value)
	if len(pieces) == 0 || pieces[0].Expression {
		return nil
	}
	name, _, bracket := strings.Cut(pieces[0].Text, "[")
	if r := rs.roles[name]; bracket && r != nil && r.instances != nil {
		return r
	}
	return nil
}

// noteBranches records that the current branches drive a role.
func (x *expander) noteBranches(name string) {
	for _, b := range x.branches {
		b.roles[name] = true
	}
}

// resultNamed is the type of the result that a name means at a place: the only one of that name, or the step's own
// instance's.
func (rs *resolver) resultNamed(at place, word string) expression.Type {
	owners := rs.timeline.results[word]
	if len(owners) == 1 {
		for _, resultType := range owners {
			return resultType
		}
	}
	own := rs.roles[at.role]
	if own == nil || own.group == nil || owners[at.role] == nil {
		return nil
	}
	for name := range owners {
		if r := rs.roles[name]; name != someRole && (r == nil || r.group != own.group) {
			return nil
		}
	}
	return owners[at.role]
}

// groupResult is the type of a result that some instance of a counted role has; nil when none has it.
func (rs *resolver) groupResult(group *role, owners map[string]expression.Type) expression.Type {
	for _, instance := range group.instances {
		if resultType := owners[instance.name]; resultType != nil {
			return resultType
		}
	}
	return nil
}

// maxRounds bounds a for_each, which is written out before the run.
const maxRounds = 10_000

// forEach compiles the steps once for each combination of values, which are known in them.
func (x *expander) forEach(step *ast.Step, at place) Action {
	block := &Block{Rounds: true}
	for _, combo := range x.product(step.Axes, step.Key.Span(), at.scope, maxRounds) {
		inner := at.scope.inner()
		combo.addTo(inner)
		use := &Use{}
		for _, each := range combo {
			use.With = append(use.With, Parameter{each.name, constant(each.value, each.node.Span())})
		}
		round := &Step{Span: step.Key.Span(), Action: use}
		if step.Name != nil {
			round.Name = x.scalar(&verb.Argument{Name: "name", Type: verb.Text}, step.Name, place{scope: inner})
			round.Label = label(step.Name.Value)
		}
		leave := x.enter(round)
		use.Steps = x.stepList(step.Do, inner)
		leave()
		block.Steps = append(block.Steps, round)
	}
	return block
}

// parallel compiles branches. A branch sees what was created before the step, and not what other branches create. The
// steps that follow see what all of them have created.
func (x *expander) parallel(step *ast.Step, s *scope) Action {
	p := &Parallel{}
	start := x.timeline
	merged := start.clone()
	outer := x.appointments
	x.appointments = nil
	inLoop := x.inLoop
	x.inLoop = false // a branch times loops of its own
	defer func() { x.inLoop = inLoop }()
	var branches []*branch
	var names []string
	for _, part := range x.branchesOf(step.Do, s) {
		written := part.step
		x.branchCount++
		b := &branch{id: x.branchCount, roles: make(map[string]bool), barriers: make(map[string]bool)}
		if written.Name != nil {
			b.name = label(written.Name.Value)
			names = append(names, b.name)
		}
		branches = append(branches, b)
		x.timeline = start.clone()
		x.branches = append(x.branches, b)
		p.Branches = append(p.Branches, part.compile()...)
		x.branches = x.branches[:len(x.branches)-1]
		merged.merge(x.timeline)
	}
	x.timeline = merged
	open := x.meet(branches, x.appointments)
	if len(x.branches) == 0 {
		x.resolveAppointments(open, names)
		open = nil
	}
	x.appointments = append(outer, open...)
	return p
}

// branch is a branch of a parallel step that is being compiled.
type branch struct {
	id   int
	name string // "" when it has none
	// roles are those that its steps drive.
	roles map[string]bool
	// barriers are the names of those it comes to, as the file has them.
	barriers map[string]bool
}

// called is what messages call a branch.
func (b *branch) called(role string) string {
	if b.name != "" {
		return "branch " + b.name
	}
	return "the branch of role " + role
}

// appointment is a barrier inside of parallel steps, with the words of its `of` that are not resolved yet.
type appointment struct {
	barrier *gathering
	name    string // as the file has it
	words   []*Value
}

// gathering are the branches and roles that meet at a barrier step.
type gathering struct {
	name  *Value
	roles []*Value
	// own are the branches that the step is in, others those that must come to a barrier of that name.
	own    []int
	others []testbed.Branch
}

// resolve is the gathering when the step runs.
func (g *gathering) resolve(env expression.Env) (any, error) {
	values := make([]any, 1+len(g.roles))
	for i, value := range append([]*Value{g.name}, g.roles...) {
		var err error
		if values[i], err = value.Get(env); err != nil {
			return nil, err
		}
	}
	resolved := testbed.Gathering{Name: values[0].(string), Own: g.own, Others: g.others}
	for _, role := range values[1:] {
		resolved.Roles = append(resolved.Roles, role.(string))
	}
	return resolved, nil
}

func (x *expander) barrier(step *ast.Step, at place) Action {
	call := x.stepVerb("barrier", step, at)
	b := &gathering{name: x.text("barrier", step.Body, at)}
	call.give("gathering", &Value{Span: step.Body.Span(), compute: b.resolve})
	if step.Of == nil {
		return call
	}
	if step.Of.Kind != syntax.Sequence || len(step.Of.Items) == 0 {
		x.errors.Report(diag.WrongShape, step.Of.Span(), "of is a list of roles and branches")
		return call
	}
	open := &appointment{barrier: b, name: step.Body.Value}
	for _, within := range x.branches {
		b.own = append(b.own, within.id)
		within.barriers[open.name] = true
	}
	for _, item := range step.Of.Items {
		value := x.scalar(&verb.Argument{Name: "of", Type: verb.Text}, item, at)
		if value == nil {
			continue
		}
		if _, known := value.Constant(); known && len(x.branches) > 0 {
			open.words = append(open.words, value)
		} else if x.isRole(value) {
			b.roles = append(b.roles, x.instanceNames(value)...)
		}
	}
	if len(x.branches) > 0 {
		x.appointments = append(x.appointments, open)
	}
	return call
}

func (d *decoder) isRole(value *Value) bool {
	name, known := value.Constant()
	if known && d.roles[name.(string)] == nil {
		d.unknownRole(name.(string), value.Span)
		return false
	}
	return true
}

// meet finds the branches that the barriers of a parallel step name, once all its branches are known. It finds one by
// its name, or all that drive a role and come to the barrier, too.
func (x *expander) meet(branches []*branch, appointments []*appointment) (open []*appointment) {
	for _, a := range appointments {
		a.words = slices.DeleteFunc(a.words, func(value *Value) bool {
			word, _ := value.Constant()
			found := false
			for _, b := range branches {
				if !b.barriers[a.name] || b.name != word && !b.roles[word.(string)] {
					continue
				}
				found = true
				if !slices.Contains(a.barrier.own, b.id) {
					a.barrier.others = append(a.barrier.others, testbed.Branch{ID: b.id, Name: b.called(word.(string))})
				}
			}
			return found
		})
		open = append(open, a)
	}
	return open
}

// resolveAppointments reads the words of a barrier that are not branches of the parallel steps around it: roles of
// guests.
func (x *expander) resolveAppointments(appointments []*appointment, names []string) {
	for _, a := range appointments {
		for _, value := range a.words {
			word, _ := value.Constant()
			r := x.roles[word.(string)]
			switch {
			case r == nil && x.abstract:
			case r == nil:
				known := append(x.roleNames(), names...)
				x.errors.Report(diag.UnknownRole, value.Span, "there is neither a role nor a branch %q here", word).
					WithHint("%s", cmp.Or(diag.DidYouMean(word.(string), known), "a branch has the name of its step"))
			case r.executable == aGuest:
				a.barrier.roles = append(a.barrier.roles, x.instanceNames(value)...)
			default:
				x.errors.Report(
					diag.BarrierIncomplete, value.Span, "no branch with steps of role %q comes to barrier %q",
					word, a.name,
				).
					WithHint("the barrier would stay closed; the other branch needs the same step")
			}
		}
	}
}
