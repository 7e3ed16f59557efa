package expression

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
)

// Env holds the values of names while a scenario runs.
type Env map[string]any

// Program is a compiled expression.  It may be run by several goroutines at once.
type Program struct {
	source   string
	program  *vm.Program
	constant bool
	value    any
	hex      bool
	names    []string
}

// Hex tells whether a number in the expression is written in hex.
func (p *Program) Hex() bool { return p.hex }

// Names are those that it mentions.
func (p *Program) Names() []string { return p.names }

// Compile checks and compiles an expression.  constants are those of names whose value is known: an
// expression of nothing else is evaluated here.
func Compile(source string, names Names, constants Env) (*Program, *Error) {
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
		return nil, at(source, seen.power.Location(), PowerOperator, "^ raises to a power here").
			hint("bitxor(a, b) is the exclusive or, ** the power")
	}
	p := &Program{
		source: source, program: program, names: seen.names,
		hex: hexNumber.MatchString(quotedTexts.ReplaceAllString(source, "")),
	}
	if seen.constant {
		value, err := p.Run(constants)
		if err != nil {
			return nil, whole(source, Evaluation, reason(err))
		}
		p.constant, p.value = true, value
	}
	return p, nil
}

// Constant returns the value of an expression that is known before the run.
func (p *Program) Constant() (value any, ok bool) { return p.value, p.constant }

// Returns is the Go type of the result as a word for messages, "" when only the run will tell.
func (p *Program) Returns() string {
	if p.constant {
		return Word(p.value)
	}
	t := p.program.Node().Type()
	if t == nil || t.Kind().String() == "interface" {
		return ""
	}
	return typeWord(t)
}

// Source is the text of the expression.
func (p *Program) Source() string { return p.source }

// Run evaluates the expression.
func (p *Program) Run(env Env) (any, error) {
	if p.constant {
		return p.value, nil
	}
	value, err := expr.Run(p.program, map[string]any(env))
	if err != nil {
		return nil, errors.New(reason(err))
	}
	return value, nil
}

// reason is a run-time error without the library's picture of the source, which the caller has.
func reason(err error) string {
	text := err.Error()
	var located *file.Error
	if errors.As(err, &located) {
		text = located.Message
	}
	if match := fetchFromNothing.FindStringSubmatch(text); match != nil {
		return "there is nothing to take \"" + match[1] + "\" of: the step that sets it has not run"
	}
	return text
}

var fetchFromNothing = regexp.MustCompile(`^cannot fetch (\S+) from <nil>`)

var (
	hexNumber   = regexp.MustCompile(`(^|[^\pL\pN_$])0[xX][0-9a-fA-F]`)
	quotedTexts = regexp.MustCompile("'[^']*'|\"[^\"]*\"|`[^`]*`")
)

type facts struct {
	constant bool
	names    []string
	power    *ast.BinaryNode
}

// inspect walks an expression once for what the library does not tell.
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
	switch v := value.(type) {
	case nil:
		return "nothing"
	case bool:
		return "a boolean"
	case int, int64, int32, uint32, uint64:
		return "an integer"
	case float64:
		return "a fraction"
	case string:
		return "a string"
	case []byte:
		return "bytes"
	case time.Duration:
		return "a duration"
	case map[string]any:
		return "a record"
	case []any, []int:
		return "a list"
	default:
		return fmt.Sprintf("a %T", v)
	}
}
