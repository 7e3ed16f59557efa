package compile

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
	"rdmarun/rdmacore"
)

// access reads rights, and checks that those of memory go together.
func (d *decoder) access(nodes []*syntax.Node, memory bool, s *scope) rdmacore.Access {
	argument := &verb.Argument{Name: "access", Type: verb.Word, Words: verb.AccessNames()}
	var rights rdmacore.Access
	for _, node := range nodes {
		if name, known := d.known(argument, node, s).(string); known {
			right, _ := rdmacore.ParseAccess(name) // the words are the parser's own
			rights |= right
		}
	}
	if memory && rights&(rdmacore.AccessRemoteWrite|rdmacore.AccessRemoteAtomic) != 0 && rights&rdmacore.AccessLocalWrite == 0 {
		d.errors.Report(diag.Conflict, nodes[0].Span(), "%s needs LOCAL_WRITE too", rights&^rdmacore.AccessRemoteRead).
			WithHint("ibv_reg_mr(3): who may not write itself cannot let others")
	}
	return rights
}

// guest reads the part of a role that a program plays.
func (x *expander) guest(written *ast.Guest, optional bool) (*testbed.GuestConfig, map[string]Signature) {
	if written == nil {
		return nil, nil
	}
	config := &testbed.GuestConfig{}
	setKnown(&config.Limits.Time, x.known(&verb.Argument{Name: "time", Type: verb.Duration, Min: 1, Max: int64(24 * time.Hour)}, written.Limits.Time, x.global))
	for _, limit := range []struct {
		argument verb.Argument
		written  *syntax.Node
		to       *int64
	}{
		{verb.Argument{Name: "memory", Type: verb.Size, Min: 64 << 10, Max: 1 << 40}, written.Limits.Memory, &config.Limits.Memory},
		{verb.Argument{Name: "registered", Type: verb.Size, Min: 1, Max: 1 << 50}, written.Limits.Registered, &config.Limits.Registered},
		{verb.Argument{Name: "handles", Type: verb.Integer, Min: 1, Max: 1 << 20}, written.Limits.Handles, &config.Limits.Handles},
		{verb.Argument{Name: "files", Type: verb.Integer, Min: 1, Max: 1 << 20}, written.Limits.Files, &config.Limits.Files},
		{verb.Argument{Name: "output", Type: verb.Size, Min: 1, Max: 1 << 50}, written.Limits.Output, &config.Limits.Output},
	} {
		if value := x.known(&limit.argument, limit.written, x.global); value != nil {
			*limit.to = int64(value.(int))
		}
	}
	module := x.known(&verb.Argument{Name: "module", Type: verb.Text}, written.Module, x.global)
	if module == nil {
		return config, nil
	}
	config.Module = module.(string)
	if !filepath.IsAbs(config.Module) {
		config.Module = x.options.locate(filepath.Join(filepath.Dir(x.file.Root.Source.Name), config.Module))
	}
	if x.options.InspectModule == nil {
		return config, nil
	}
	functions, err := x.options.InspectModule(config.Module)
	if err != nil && optional {
		config.Missing = oneLine(err.Error())
	} else if err != nil {
		wrong := x.errors.Report(diag.GuestModule, written.Module.Span(), "%s", oneLine(err.Error()))
		if strings.Contains(filepath.ToSlash(config.Module), "bin/guests/") {
			wrong.WithHint("`make guests` builds the guests that come with rdmarun")
		}
	}
	return config, functions
}

// oneLine joins the lines of an error.
func oneLine(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, " ")
}

// roleArguments are the arguments of the guest of a role, compiled where a step starts it.
func (x *expander) roleArguments(step *ast.Step, at place) []*Value {
	name, s := at.role, x.global
	if r := x.instances[at.role]; r != nil {
		name, s = r.group, s.inner()
		s.add(indexName, expression.Integer, r.index)
	} else if group := x.groupOf(step.Role); group != nil {
		name, s = group.name, s.inner()
		s.add(indexName, expression.Integer, nil)
	}
	for _, written := range x.file.Roles {
		if written.Name.Value == name && written.Guest != nil {
			return x.guestArguments(written.Guest.Args, place{scope: s, role: at.role, anyRole: at.anyRole})
		}
	}
	return nil
}

func (d *decoder) guestArguments(nodes []*syntax.Node, at place) []*Value {
	values := make([]*Value, 0, len(nodes))
	for _, node := range nodes {
		if value := d.scalar(&verb.Argument{Name: "args", Type: verb.Text}, node, at); value != nil {
			values = append(values, value)
		}
	}
	return values
}

// guestCall compiles the call of a guest's function, and holds it against the module.
func (x *expander) guestCall(step *ast.Step, at place) Action {
	g := &GuestCall{Within: x.duration("within", step.Within, at)}
	g.Role, at = x.roleOf(step, at, true, false)
	result := verb.GuestCallResult()
	g.Expect = x.expectations(step, result, nil, at)
	if step.Function == nil {
		return g
	}
	name := x.known(&verb.Argument{Name: "function", Type: verb.Text}, step.Function, at.scope)
	if name == nil {
		return g
	}
	g.Function = name.(string)
	known := x.signature(g, step, at)
	g.Arguments = x.integers(g, step, known, at)
	if known && g.Signature.Results == "" && (step.Expect != nil || step.AnyResult || step.As != nil) {
		x.errors.Report(diag.GuestFunction, step.Function.Span(), "the function %q returns nothing", g.Function)
	}
	g.As = x.named(step, at, result, nil)
	return g
}

// signature finds the function in the role's module; false when the module is not known, or lacks it.
func (x *expander) signature(g *GuestCall, step *ast.Step, at place) bool {
	r := x.role(at.role)
	if r == nil || r.functions == nil {
		return false
	}
	signature, found := r.functions[g.Function]
	if !found {
		names := sortedKeys(r.functions)
		x.errors.Report(diag.GuestFunction, step.Function.Span(), "the guest of role %q exports no function %q", r.name, g.Function).
			WithOneOf(g.Function, names)
		return false
	}
	if strings.Trim(signature.Params+signature.Results, "iI") != "" || len(signature.Results) > 1 {
		x.errors.Report(diag.GuestFunction, step.Function.Span(), "a step cannot call %q, whose type is %s", g.Function, signature).
			WithHint("a step gives integers, i32 and i64, and takes one at most")
		return false
	}
	g.Signature = signature
	return true
}

// integers compiles the arguments of a call.
func (x *expander) integers(g *GuestCall, step *ast.Step, known bool, at place) []*Value {
	var nodes []*syntax.Node
	if step.Args != nil {
		if step.Args.Kind != syntax.Sequence {
			x.errors.Report(diag.WrongShape, step.Args.Span(), "args is a list of integers")
			return nil
		}
		nodes = step.Args.Items
	}
	if known && len(nodes) != len(g.Signature.Params) {
		span := step.Function.Span()
		if step.Args != nil {
			span = step.Args.Span()
		}
		x.errors.Report(diag.GuestFunction, span, "the function %q takes %d arguments, and these are %d", g.Function, len(g.Signature.Params), len(nodes)).
			WithHint("its type is %s", g.Signature)
		return nil
	}
	values := make([]*Value, 0, len(nodes))
	for i, node := range nodes {
		argument := &verb.Argument{Name: fmt.Sprintf("argument %d", i+1), Type: verb.Integer}
		if known && g.Signature.Params[i] == 'i' {
			argument.Min, argument.Max = -1<<31, 1<<32-1
		}
		if value := x.scalar(argument, node, at); value != nil {
			values = append(values, value)
		}
	}
	return values
}

// String is the signature as wasm tools write it.
func (s Signature) String() string {
	spell := func(letters string) string {
		words := make([]string, len(letters))
		for i := range letters {
			words[i] = map[byte]string{'i': "i32", 'I': "i64", 'f': "f32", 'F': "f64"}[letters[i]]
		}
		return "(" + strings.Join(words, " ") + ")"
	}
	return spell(s.Params) + " -> " + spell(s.Results)
}
