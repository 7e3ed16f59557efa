package compile

import (
	"slices"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
)

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

// appointment is a barrier inside of parallel steps, with the words of its `of` that are still without meaning.
type appointment struct {
	barrier *Barrier
	name    string // as the file has it
	words   []*Value
}

func (c *compiler) barrier(step *ast.Step, at place) Action {
	b := &Barrier{
		Name:   c.scalar(&verb.Argument{Name: "barrier", Type: verb.Text}, step.Body, at),
		Within: c.duration("within", step.Within, at),
	}
	if step.Of == nil {
		return b
	}
	if step.Of.Kind != syntax.Sequence || len(step.Of.Items) == 0 {
		c.errors.Report(diag.WrongShape, step.Of.Span(), "of is a list of roles and branches")
		return b
	}
	open := &appointment{barrier: b, name: step.Body.Value}
	for _, within := range c.branches {
		b.Own = append(b.Own, within.id)
		within.barriers[open.name] = true
	}
	for _, item := range step.Of.Items {
		value := c.scalar(&verb.Argument{Name: "of", Type: verb.Text}, item, at)
		if value == nil {
			continue
		}
		if _, known := value.Constant(); known && len(c.branches) > 0 {
			open.words = append(open.words, value)
		} else if c.isRole(value) {
			b.Roles = append(b.Roles, c.parties(value)...)
		}
	}
	if len(c.branches) > 0 {
		c.appointments = append(c.appointments, open)
	}
	return b
}

func (c *compiler) isRole(value *Value) bool {
	name, known := value.Constant()
	if known && c.role(name.(string)) == nil {
		c.unknownRole(name.(string), value.Span)
		return false
	}
	return true
}

// meet finds the branches that the barriers of a parallel step mean, once all its branches are known: one by its
// name, or all that drive a role and come to the barrier, too.
func (c *compiler) meet(branches []*branch, appointments []*appointment) (open []*appointment) {
	for _, a := range appointments {
		a.words = slices.DeleteFunc(a.words, func(value *Value) bool {
			word, _ := value.Constant()
			found := false
			for _, b := range branches {
				if !b.barriers[a.name] || b.name != word && !b.roles[word.(string)] {
					continue
				}
				found = true
				if !slices.Contains(a.barrier.Own, b.id) {
					a.barrier.Others = append(a.barrier.Others, testbed.Branch{ID: b.id, Name: b.called(word.(string))})
				}
			}
			return found
		})
		open = append(open, a)
	}
	return open
}

// settle reads the words that no parallel step around a barrier has given a meaning: roles, whose guests come.
func (c *compiler) settle(appointments []*appointment, names []string) {
	for _, a := range appointments {
		for _, value := range a.words {
			word, _ := value.Constant()
			r := c.role(word.(string))
			switch {
			case r == nil && c.abstract:
			case r == nil:
				known := append(sortedKeys(c.roles), names...)
				c.errors.Report(diag.UnknownRole, value.Span, "there is neither a role nor a branch %q here", word).
					WithHint("%s", hintOr(diag.DidYouMean(word.(string), known), "a branch has the name of its step"))
			case r.guest:
				a.barrier.Roles = append(a.barrier.Roles, c.parties(value)...)
			default:
				c.errors.Report(diag.NobodyComes, value.Span, "no branch with steps of role %q comes to barrier %q", word, a.name).
					WithHint("the barrier would stay closed; the other branch needs the same step")
			}
		}
	}
}
