package compile

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
	"rdmarun/host/trace"
)

// nativeProgram reads the part of a role that a native program plays; nil for none.  Whether it exists, the host that
// runs it knows.
func (x *expander) nativeProgram(written *ast.Program) *testbed.ProgramConfig {
	if written == nil || len(written.Command) == 0 {
		return nil
	}
	folder := filepath.Dir(x.options.locate(x.file.Root.Source.Name))
	config := &testbed.ProgramConfig{Folder: folder}
	setKnown(&config.Program, x.known(&verb.Argument{Name: "command", Type: verb.Text}, written.Command[0], x.global))
	if written.Folder != nil {
		var named string
		setKnown(&named, x.known(&verb.Argument{Name: "cwd", Type: verb.Text}, written.Folder, x.global))
		if config.WorkingFolder = named; !filepath.IsAbs(named) {
			config.WorkingFolder = filepath.Join(folder, named)
		}
	}
	setKnown(&config.User, x.known(&verb.Argument{Name: "user", Type: verb.Text}, written.User, x.global))
	setKnown(
		&config.Timeout,
		x.known(
			&verb.Argument{Name: "timeout", Type: verb.Duration, Min: 1, Max: int64(24 * time.Hour)}, written.Timeout,
			x.global,
		),
	)
	if bytes := x.known(
		&verb.Argument{Name: "output", Type: verb.Size, Min: 1, Max: 1 << 40}, written.Output, x.global,
	); bytes != nil {
		config.Output = int64(bytes.(int))
	}
	config.Inputs = x.inputFiles(inputsOfProgram(written))
	config.Trace = x.tracedCalls(written.Trace)
	return config
}

// tracedCalls are the calls that trace chooses: a truth value, or one or several expressions of names. It returns nil
// for none.
func (x *expander) tracedCalls(node *syntax.Node) *trace.Filter {
	if node == nil {
		return nil
	}
	node, at := x.global.resolve(node)
	expressions := []*syntax.Node{node}
	if node.Kind == syntax.Sequence {
		if expressions = node.Items; len(expressions) == 0 {
			x.errors.Report(diag.EmptyList, node.Span(), "trace: the list is empty").WithHint("leave the key out")
		}
	}
	var chosen []string
	for _, each := range expressions {
		calls, known := x.known(&verb.Argument{Name: "trace", Type: verb.Text}, each, at).(string)
		switch {
		case !known: // and reported
			return nil
		case each == node && calls == "false":
			return nil
		case each == node && calls == "true": // all
		case x.isFilter(calls, each):
			chosen = append(chosen, calls)
		}
	}
	filter, err := trace.ParseFilter(chosen)
	if err != nil {
		x.errors.Report(diag.NotOneOf, node.Span(), "trace: %v", err)
	}
	return filter
}

// isFilter reports whether an expression names calls and groups. If not, it is an error.
func (x *expander) isFilter(expression string, node *syntax.Node) bool {
	_, err := trace.ParseFilter([]string{expression})
	unknown := (*trace.NameError)(nil)
	if !errors.As(err, &unknown) {
		return true
	}
	possible, names := trace.FilterNames()
	if strings.Contains(unknown.Name, "_") {
		possible = names
	}
	x.errors.Report(diag.NotOneOf, node.Span(), "%v", err).WithOneOf(unknown.Name, possible)
	return false
}

func inputsOfProgram(written *ast.Program) inputs {
	return inputs{written.Env, written.Files, written.Stdin}
}

// launch gives a step that starts a program what this gets: the role's, but for arguments of the step's own.
func (x *expander) launch(step *ast.Step, call *Call, at place) {
	role, there := x.ofRole(step, at)
	if role == nil || role.Program == nil || len(role.Program.Command) == 0 {
		return
	}
	written := role.Program
	call.give("input", x.input(inputsOfProgram(written), nil, there).ofFile())
	command := x.texts(written.Command, there).ofFile()
	switch {
	case step.Args == nil:
	case step.Args.Kind != syntax.Sequence:
		x.errors.Report(diag.WrongShape, step.Args.Span(), "args is a list of words")
	default:
		command = x.joined(x.texts(written.Command[:1], there).ofFile(), x.texts(step.Args.Items, at))
	}
	call.give("command", x.converted(command, func(words any) (any, error) {
		return verb.CommandLine(words.([]string)), nil
	}))
}

// joined are two lists of words as one.
func (d *decoder) joined(first, second *Value) *Value {
	if first == nil || second == nil {
		return nil
	}
	return d.combined(first.Span, []*Value{first, second}, func(values []any) (any, error) {
		return slices.Concat(values[0].([]string), values[1].([]string)), nil
	})
}

// patternArgument compiles a regular expression of the syntax of Go, which is linear in the length of what it is
// compared with.
func (d *decoder) patternArgument(argument *verb.Argument, node *syntax.Node, at place) *Value {
	return d.converted(d.scalar(&verb.Argument{Name: argument.Name, Type: verb.Text}, node, at), compilePattern)
}

// units compiles {NAME: UNIT}.
func (d *decoder) units(argument *verb.Argument, node *syntax.Node, at place) *Value {
	node, at.scope = at.scope.resolve(node)
	if node.Kind != syntax.Mapping {
		return d.refuse(
			diag.WrongShape, node.Span(), argument.Name+": {average: Gbit/s}",
			"%s is a mapping of names to units, and this is a %s", argument.Name, node.Kind,
		)
	}
	units := make(verb.Units, len(node.Pairs))
	for _, pair := range node.Pairs {
		word, known := d.known(&verb.Argument{Name: pair.Key.Value, Type: verb.Text}, pair.Value, at.scope).(string)
		if !known {
			continue
		}
		unit, is := verb.UnitOf(word)
		switch {
		case !ast.IsName(pair.Key.Value):
			return d.refuse(
				diag.BadName, pair.Key.Span(), "", "%q cannot be the name of a value", pair.Key.Value,
			)
		case !is:
			return d.refuse(
				diag.WrongUnit, pair.Value.Span(), "there are "+strings.Join(verb.UnitNames(), ", "),
				"no unit is called %q", word,
			)
		}
		units[pair.Key.Value] = unit
	}
	return constant(units, node.Span())
}
