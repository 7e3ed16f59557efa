package compile

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rdmarun/host/guest"
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
	if memory && rights&(rdmacore.AccessRemoteWrite|rdmacore.AccessRemoteAtomic) != 0 &&
		rights&rdmacore.AccessLocalWrite == 0 {
		d.errors.Report(diag.Conflict, nodes[0].Span(), "%s needs LOCAL_WRITE too", rights&^rdmacore.AccessRemoteRead).
			WithHint("ibv_reg_mr(3): a region without LOCAL_WRITE cannot allow remote writes")
	}
	return rights
}

// guest reads the part of a role that a program plays.
func (x *expander) guest(written *ast.Guest, optional bool) (*testbed.GuestConfig, map[string]Signature) {
	if written == nil {
		return nil, nil
	}
	config := &testbed.GuestConfig{}
	setKnown(
		&config.Limits.Time,
		x.known(
			&verb.Argument{Name: "time", Type: verb.Duration, Min: 1, Max: int64(24 * time.Hour)}, written.Limits.Time,
			x.global,
		),
	)
	for _, limit := range []struct {
		argument verb.Argument
		written  *syntax.Node
		to       *int64
	}{
		{
			verb.Argument{Name: "memory", Type: verb.Size, Min: 64 << 10, Max: 1 << 40}, written.Limits.Memory,
			&config.Limits.Memory,
		},
		{
			verb.Argument{Name: "registered", Type: verb.Size, Min: 1, Max: 1 << 50}, written.Limits.Registered,
			&config.Limits.Registered,
		},
		{
			verb.Argument{Name: "handles", Type: verb.Integer, Min: 1, Max: 1 << 20}, written.Limits.Handles,
			&config.Limits.Handles,
		},
		{
			verb.Argument{Name: "files", Type: verb.Integer, Min: 1, Max: 1 << 20}, written.Limits.Files,
			&config.Limits.Files,
		},
		{
			verb.Argument{Name: "ports", Type: verb.Integer, Min: 1, Max: 1 << 20}, written.Limits.Ports,
			&config.Limits.Ports,
		},
		{
			verb.Argument{Name: "output", Type: verb.Size, Min: 1, Max: 1 << 50}, written.Limits.Output,
			&config.Limits.Output,
		},
	} {
		if value := x.known(&limit.argument, limit.written, x.global); value != nil {
			*limit.to = int64(value.(int))
		}
	}
	config.Deterministic = isTrue(written.Deterministic)
	config.Inputs = x.inputFiles(inputsOf(written))
	at, err := x.program(written, config)
	if at == nil {
		return config, nil
	}
	var functions map[string]Signature
	if err == nil && x.options.InspectModule != nil {
		functions, err = x.options.InspectModule(config.Module)
	}
	if err == nil && config.Script != nil && x.options.ParseScript != nil {
		err = x.options.ParseScript(config.Script)
	}
	if err != nil && optional {
		config.Missing = oneLine(err.Error())
	} else if err != nil {
		span, message := at.Span(), err.Error()
		if place := (*guest.ScriptError)(nil); written.Script != nil && errors.As(err, &place) {
			span, message = scriptSpan(at, config.Script.Text, place), place.Text
		}
		wrong := x.errors.Report(diag.GuestModule, span, "%s", oneLine(message))
		if strings.Contains(filepath.ToSlash(config.Module), "bin/guests/") {
			wrong.WithHint("`make guests` builds the guests that come with rdmarun")
		}
	}
	return config, functions
}

// program finds the module that plays the role, and for a script the engine, which is one.  It is nil where the name of
// a file is wrong already, else where errors are.
func (x *expander) program(written *ast.Guest, config *testbed.GuestConfig) (at *syntax.Node, err error) {
	if written.Script != nil {
		config.Script = scriptIn(written.Script)
		if err := config.Script.Check(); err != nil {
			return written.Script, err
		}
		config.Module, err = x.engine()
		return written.Script, err
	}
	module, ok := x.known(&verb.Argument{Name: "module", Type: verb.Text}, written.Module, x.global).(string)
	if !ok {
		return nil, nil
	}
	if !filepath.IsAbs(module) {
		module = filepath.Join(filepath.Dir(x.file.Root.Source.Name), module)
	}
	config.Module, config.SourceMap = x.options.locate(module), x.options.locate(guest.CodeOf(module).SourceMap)
	if !guest.IsScript(module) || x.options.InspectModule == nil {
		return written.Module, nil
	}
	config.File = config.Module
	if config.Script, err = guest.ReadScript(config.Module); err != nil {
		return written.Module, err
	}
	config.Script.File = module
	config.Module, err = x.engine()
	return written.Module, err
}

// engine is the module that runs scripts; where modules are not looked at, none.
func (x *expander) engine() (string, error) {
	if x.options.InspectModule == nil {
		return "", nil
	}
	return guest.Engine()
}

// scriptIn is a script in the scenario.  Empty lines before it make its lines those of the file, and blanks its
// columns, where they do not become a part of a text.
func scriptIn(node *syntax.Node) *guest.Script {
	before := node.Position.Line - 1
	if node.Style == syntax.Literal || node.Style == syntax.Folded {
		before++
	}
	text := node.Value
	first := len(text) - len(strings.TrimLeft(text, "\n"))
	textOfLines := strings.Contains(text, "`") || strings.Contains(text, "\\\n")
	if node.Style != syntax.Folded && first < len(text) && !textOfLines {
		blanks := strings.Repeat(" ", node.Locate(first, first+1).Column-1)
		if node.Style == syntax.Literal {
			text = strings.ReplaceAll(text, "\n", "\n"+blanks)
		}
		text = blanks + text
	}
	return &guest.Script{File: node.Source.Name, Text: strings.Repeat("\n", before) + text}
}

// scriptSpan is where a script in the scenario, padded by scriptIn, is wrong.  A quoted one may have more lines than
// the scenario has for it.
func scriptSpan(node *syntax.Node, padded string, place *guest.ScriptError) diag.Span {
	if node.Style == syntax.Literal || node.Style == syntax.Folded {
		return node.Source.At(diag.Position{Line: place.Line, Column: place.Column}, 1)
	}
	from, lines := 0, strings.SplitAfter(padded, "\n")
	for _, line := range lines[:min(place.Line-1, len(lines))] {
		from += len(line)
	}
	from = max(0, min(from+place.Column-1-(len(padded)-len(node.Value)), len(node.Value)-1))
	return node.Locate(from, from+1)
}

// oneLine joins the lines of an error.
func oneLine(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, " ")
}

// ofRole finds the role of a step in the file, and the place of its guest or program for a step that starts it. It
// returns nil where there is none.
func (x *expander) ofRole(step *ast.Step, at place) (*ast.Role, place) {
	name, s := at.role, x.global
	if r := x.roles[at.role]; r != nil && r.group != nil {
		name, s = r.group.name, s.inner()
		s.add(indexName, expression.Integer, r.index)
	} else if group := x.groupOf(step.Role); group != nil {
		name, s = group.name, s.inner()
		s.add(indexName, expression.Integer, nil)
	}
	for _, written := range x.file.Roles {
		if written.Name.Value == name {
			return written, place{scope: s, role: at.role, anyRole: at.anyRole}
		}
	}
	return nil, at
}

// texts compiles words that a guest or a program is given.
func (d *decoder) texts(nodes []*syntax.Node, at place) *Value {
	values := make([]*Value, 0, len(nodes))
	for _, node := range nodes {
		if value := d.text("args", node, at); value != nil {
			values = append(values, value)
		}
	}
	return d.combined(diag.Span{}, values, func(values []any) (any, error) {
		words := make([]string, len(values))
		for i, value := range values {
			words[i] = value.(string)
		}
		return words, nil
	})
}

// stepVerb begins the call of a verb that is no row of the table, with its limit of time.
func (x *expander) stepVerb(name string, step *ast.Step, at place) *Call {
	v := verb.StepVerb(name)
	call := &Call{Verb: v, Arguments: make([]*Value, len(v.Arguments)), span: step.Key.Span()}
	if v.Waits {
		call.give("within", constant(v.Arguments[v.Argument("within")].Default, call.span))
		call.give("within", x.duration("within", step.Within, at))
	}
	return call
}

// give sets an argument; nil leaves it as it is.
func (call *Call) give(name string, value *Value) {
	if value != nil {
		call.Arguments[call.Verb.Argument(name)] = value
	}
}

// executableStep compiles what is done with the guest or the program of a role.
func (x *expander) executableStep(step *ast.Step, at place, kind executable, operations []string) Action {
	operation := step.Body.Value
	role, at := x.roleOf(step, at, kind, false)
	if !slices.Contains(operations, operation) {
		return &Block{}
	}
	call := x.executableCall(kind.does()+" "+operation, step, role, at)
	starts := operation == "start" || operation == "run"
	switch {
	case operation == "call":
		call.give("function", x.invocation(step, at))
	case operation == "signal" && step.Signal != nil:
		call.give("signal", x.scalar(&call.Verb.Arguments[call.Verb.Argument("signal")], step.Signal, at))
	case starts && kind == aGuest:
		x.begin(step, call, at)
	case starts:
		x.launch(step, call, at)
	}
	x.asOf(step, call, nil, at)
	return call
}

// executableCall begins the call of a step of a guest or a program.  An expected end is any, unless the step expects an
// exit code.
func (x *expander) executableCall(name string, step *ast.Step, role *Value, at place) *Call {
	call := x.stepVerb(name, step, at)
	call.Role = role
	call.Expect = x.expectations(step, call.Verb, nil, at)
	if step.AnyResult || step.Expect != nil && step.Expect.Get("exit") == nil {
		call.Expect = slices.DeleteFunc(call.Expect, func(e Expectation) bool { return e.Default })
	}
	return call
}

// begin gives a step that starts a guest what the program gets: the role's, but for arguments of the step's own.
func (x *expander) begin(step *ast.Step, call *Call, at place) {
	role, there := x.ofRole(step, at)
	written := &ast.Guest{}
	if role != nil && role.Guest != nil {
		written = role.Guest
		call.give("input", x.input(inputsOf(written), written.Allow, there).ofFile())
	}
	switch {
	case step.Args == nil && len(written.Args) > 0:
		call.give("args", x.texts(written.Args, there).ofFile())
	case step.Args == nil:
	case step.Args.Kind != syntax.Sequence:
		x.errors.Report(diag.WrongShape, step.Args.Span(), "args is a list of words")
	default:
		call.give("args", x.texts(step.Args.Items, at))
	}
}

// invocation compiles the call of a guest's function, and holds it against the module.
func (x *expander) invocation(step *ast.Step, at place) *Value {
	function, isName := x.known(&verb.Argument{Name: "function", Type: verb.Text}, step.Function, at.scope).(string)
	if !isName {
		return nil
	}
	signature, known := x.signature(function, step, at)
	if known && signature.Results == "" && (step.Expect != nil || step.AnyResult || step.As != nil) {
		x.errors.Report(diag.GuestFunction, step.Function.Span(), "the function %q returns nothing", function)
	}
	values := x.integers(function, signature, known, step, at)
	return x.combined(step.Function.Span(), values, func(values []any) (any, error) {
		call := verb.Invocation{
			Function: function, Values: values, Words: make([]uint64, len(values)), Narrow: signature.Results == "i",
		}
		for i, value := range values {
			call.Words[i] = expression.Bits(value)
			if known && signature.Params[i] == 'i' {
				call.Words[i] = uint64(uint32(call.Words[i]))
			}
		}
		return call, nil
	})
}

// signature finds the function in the role's module; false when the module is not known, or lacks it.
func (x *expander) signature(function string, step *ast.Step, at place) (signature Signature, known bool) {
	r := x.roles[at.role]
	if r == nil || r.functions == nil {
		return signature, false
	}
	signature, known = r.functions[function]
	if !known {
		names := sortedKeys(r.functions)
		x.errors.Report(
			diag.GuestFunction, step.Function.Span(), "the guest of role %q exports no function %q", r.name, function,
		).
			WithOneOf(function, names)
		return signature, false
	}
	if strings.Trim(signature.Params+signature.Results, "iI") != "" || len(signature.Results) > 1 {
		x.errors.Report(
			diag.GuestFunction, step.Function.Span(), "a step cannot call %q of type %s", function, signature,
		).
			WithHint("a step gives integers, i32 and i64, and takes one at most")
		return signature, false
	}
	return signature, true
}

// integers compiles the arguments of a call.
func (x *expander) integers(function string, signature Signature, known bool, step *ast.Step, at place) []*Value {
	var nodes []*syntax.Node
	if step.Args != nil {
		if step.Args.Kind != syntax.Sequence {
			x.errors.Report(diag.WrongShape, step.Args.Span(), "args is a list of integers")
			return nil
		}
		nodes = step.Args.Items
	}
	if known && len(nodes) != len(signature.Params) {
		span := step.Function.Span()
		if step.Args != nil {
			span = step.Args.Span()
		}
		x.errors.Report(
			diag.GuestFunction, span, "the function %q takes %d arguments, and these are %d", function,
			len(signature.Params), len(nodes),
		).
			WithHint("its type is %s", signature)
		return nil
	}
	values := make([]*Value, 0, len(nodes))
	for i, node := range nodes {
		argument := &verb.Argument{Name: fmt.Sprintf("argument %d", i+1), Type: verb.Integer}
		if known && signature.Params[i] == 'i' {
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
