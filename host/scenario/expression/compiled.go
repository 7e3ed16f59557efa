// Package expression finds $(...) in the values of a scenario, compiles what is inside against the
// names in scope, and evaluates it.  It is the only package that imports the expression library.
//
// Expressions are compiled once, before the run. So a typing error is a message with a position, and not an error in
// the middle of a test. They have no I/O, no clock and no loops of their own.
package expression

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"sync"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/checker/nature"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/optimizer"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"

	"rdmarun/host/scenario/diag"
	"strings"
	"unicode"
)

// Env holds the values of names while a scenario runs.
type Env map[string]any

// Compiled is a compiled expression.  It may be run by several goroutines at once.
type Compiled struct {
	program  *vm.Program
	constant bool
	value    any
	hex      bool
	names    []string
}

// Hex reports whether a number in the expression is written in hex.
func (p *Compiled) Hex() bool { return p.hex }

// Names are those that it mentions.
func (p *Compiled) Names() []string { return p.names }

// Compile checks and compiles an expression.  constants are the values that are known: an expression of nothing else is
// evaluated here.
func Compile(source string, names Names, constants Env) (*Compiled, *Error) {
	var seen facts
	text, bad := read(source)
	if bad != nil {
		return nil, bad
	}
	program, err := compile(text, names, func(node ast.Node) { seen = inspect(node, constants) })
	if err != nil {
		return nil, explain(text, names, err)
	}
	if seen.power != nil {
		return nil, at(source, seen.power.Location(), diag.PowerOperator, "^ raises to a power here").
			hint("bitxor(a, b) is the exclusive or, ** the power")
	}
	p := &Compiled{program: program, names: seen.names, hex: text.hex}
	if seen.constant {
		value, err := p.Run(constants)
		if err != nil {
			return nil, whole(source, diag.Evaluation, reason(err))
		}
		p.constant, p.value = true, value
	}
	return p, nil
}

// Constant returns the value of an expression that is known before the run.
func (p *Compiled) Constant() (value any, ok bool) { return p.value, p.constant }

// Returns is the Go type of the result as a word for messages, "" when it is known only in the run.
func (p *Compiled) Returns() string {
	if p.constant {
		return Word(p.value)
	}
	t := p.program.Node().Type()
	if t == nil || t.Kind() == reflect.Interface {
		return ""
	}
	return typeWord(t)
}

// Run evaluates the expression.
func (p *Compiled) Run(env Env) (any, error) {
	if p.constant {
		return p.value, nil
	}
	value, err := expr.Run(p.program, map[string]any(env))
	if err != nil {
		return nil, errors.New(reason(err))
	}
	if elsewhere, is := value.(Elsewhere); is {
		return nil, elsewhere
	}
	return value, nil
}

// Elsewhere is the value of a number that only another process has: a counter of a role that it plays.
type Elsewhere struct{}

// Error implements error.
func (Elsewhere) Error() string {
	return "only the process that plays its role can read the counter: give the step that role (role: NAME), so that " +
		"it runs there"
}

// elsewhereType is what messages of the library call it.
var elsewhereType = reflect.TypeFor[Elsewhere]().String()

// reason is a run-time error without the library's picture of the source, which the caller has.
func reason(err error) string {
	text := err.Error()
	var located *file.Error
	if errors.As(err, &located) {
		text = located.Message
	}
	if text == "runtime error: integer divide by zero" { // the library leaves integers to Go
		return "a division by zero"
	}
	if text == "interface conversion: interface {} is nil, not int" || fromNothing.MatchString(text) {
		return "a number is not there: the device has no counter of that name, or the step that sets it has not run"
	}
	if strings.Contains(text, elsewhereType) {
		return Elsewhere{}.Error()
	}
	if text == "memory budget exceeded" {
		return fmt.Sprintf(
			"its lists have more than %d items together: take a shorter range, or a loop (repeat, for_each)",
			maxRange,
		)
	}
	if match := fetchFromNothing.FindStringSubmatch(text); match != nil {
		return "\"" + match[1] + "\" has no value yet: the step that sets it has not run"
	}
	return text
}

// fromNothing is the library's error for a comparison with an absent value.
var fromNothing = regexp.MustCompile(`^invalid operation: (?:<nil> \S+ int|int \S+ <nil>)$`)

var fetchFromNothing = regexp.MustCompile(`^cannot fetch (\S+) from <nil>`)

type facts struct {
	constant bool
	names    []string
	power    *ast.BinaryNode
}

// inspect walks an expression once for facts that the library does not have.
func inspect(node ast.Node, constants Env) facts {
	f := &visitor{facts: facts{constant: true}, constants: constants}
	ast.Walk(&node, f)
	return f.facts
}

type visitor struct {
	facts
	constants Env
}

func (v *visitor) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		v.names = append(v.names, n.Value)
		_, known := v.constants[n.Value]
		if _, named := functions()[n.Value]; !known && !named {
			v.constant = false
		}
	case *ast.BinaryNode:
		if n.Operator == "^" {
			v.power = n
		}
	}
}

// Word names the type of a value for messages.
func Word(value any) string {
	if value == nil {
		return "nothing"
	}
	return typeWord(reflect.TypeOf(value))
}

func typeWord(t reflect.Type) string {
	switch kind := t.Kind(); {
	case t == duration:
		return "a duration"
	case kind == reflect.Bool:
		return "a boolean"
	case kind >= reflect.Int && kind <= reflect.Uint64:
		return "an integer"
	case kind == reflect.Float64:
		return "a fraction"
	case kind == reflect.String:
		return "a string"
	case kind == reflect.Map || kind == reflect.Struct:
		return "a record"
	case kind == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "bytes"
	case kind == reflect.Slice:
		return "a list"
	}
	return "a " + t.String()
}

// Type is the type of a name in an expression.
type Type = types.Type

// The types that scenarios use.
var (
	Integer = types.Int
	Float   = types.Float
	String  = types.String
	Boolean = types.Bool
	Any     = types.Any
)

// Object is a type with named members.
type Object = types.Map

// List is the type of a list of items of one type.
func List(of Type) Type { return types.Array(of) }

// MapOf is the type of a mapping with any names and values of one type.
func MapOf(of Type) Type { return types.Map{types.Extra: of} }

// TypeOf is the type of a Go value; struct fields carry their names in an `expr` tag.
func TypeOf(value any) Type { return types.TypeOf(value) }

// Names is what an expression may mention, each with its type.
type Names map[string]Type

// Words lists the words in an expression; what it mentions is among them.
func Words(source string) map[string]bool {
	words := make(map[string]bool)
	outside := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) && r != '_' }
	for w := range strings.FieldsFuncSeq(source, outside) {
		if w = strings.TrimLeftFunc(w, unicode.IsNumber); w != "" {
			words[w] = true
		}
	}
	return words
}

// sorted lists the names.
func (n Names) sorted() []string { return slices.Sorted(maps.Keys(n)) }

// members lists the names that may follow a value of that type and a dot; nil when they are not known.
func members(t Type) []string {
	if object, ok := t.(Object); ok {
		names := slices.Sorted(maps.Keys(object))
		return slices.DeleteFunc(names, func(name string) bool { return name == types.Extra })
	}
	nature := t.Nature()
	if nature.Type == nil || nature.Type.Kind() != reflect.Struct {
		return nil
	}
	var names []string
	for i := range nature.Type.NumField() {
		if tag := nature.Type.Field(i).Tag.Get("expr"); tag != "" {
			names = append(names, tag)
		}
	}
	return names
}

// disabled are functions of the library that no expression has: the time is the provider's.
const disabled = "now"

// builtins are the library's functions, a table that nothing changes.  Making it anew for each expression, as
// expr.Compile does, would be most of the time that a scenario's check takes.
var builtins = sync.OnceValue(func() conf.FunctionsTable {
	table := make(conf.FunctionsTable, len(builtin.Builtins))
	for _, function := range builtin.Builtins {
		if function.Name != disabled {
			table[function.Name] = function
		}
	}
	return table
})

// functions are the operators that are calls here, a table that nothing changes either.
var functions = sync.OnceValue(operations)

// compile is expr.Compile with the environment of names.  see is given the expression as it was written: the optimizer
// replaces what it can compute.
func compile(read text, names Names, see func(ast.Node)) (*vm.Program, error) {
	config := &conf.Config{
		Optimize: true, ShortCircuit: true, MaxNodes: conf.DefaultMaxNodes,
		Builtins: builtins(), Functions: functions(), Disabled: map[string]bool{disabled: true},
	}
	config.WithEnv(Object(names))
	tree, err := parser.ParseWithConfig(read.masked, config)
	if err != nil {
		return nil, err
	}
	ast.Walk(&tree.Node, read)
	see(tree.Node)
	if err := checkTypes(tree, config); err != nil {
		return nil, err
	}
	if err := optimizer.Optimize(&tree.Node, config); err != nil {
		return nil, err
	}
	return compiler.Compile(tree, config)
}

// checkTypes checks a tree, in which it replaces operators.  That changes the types of the operators around, so it goes
// on until nothing is left to replace.
func checkTypes(tree *parser.Tree, config *conf.Config) error {
	for {
		ast.Walk(&tree.Node, forgetful{})
		_, err := new(checker.Checker).Check(tree, config)
		replaced := &replacer{cache: &config.NtCache}
		ast.Walk(&tree.Node, replaced)
		switch {
		case replaced.bad != nil:
			return &file.Error{Location: replaced.bad.node.Location(), Message: replaced.bad.message}
		case !replaced.changed:
			return err
		}
	}
}

// forgetful removes the types of calls: the library does not check the arguments of a call that has a type.
type forgetful struct{}

func (forgetful) Visit(node *ast.Node) {
	if call, is := (*node).(*ast.CallNode); is {
		call.SetNature(nature.Nature{})
	}
}
