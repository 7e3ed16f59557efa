package expression

import (
	"sync"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/checker/nature"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/optimizer"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"
)

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

// checkTypes checks a tree, in which it replaces operators.  That changes the types of what stands around, so it goes on
// until nothing is left to replace.
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

// forgetful takes the types from calls, of which the library would not look at the arguments again.
type forgetful struct{}

func (forgetful) Visit(node *ast.Node) {
	if call, is := (*node).(*ast.CallNode); is {
		call.SetNature(nature.Nature{})
	}
}
