package expression

import (
	"sync"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/optimizer"
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

// compile is expr.Compile with the environment of names.  see is given the expression as it was written: the optimizer
// replaces what it can compute.
func compile(source string, names Names, see func(ast.Node)) (*vm.Program, error) {
	config := &conf.Config{
		Optimize: true, ShortCircuit: true, MaxNodes: conf.DefaultMaxNodes,
		Builtins: builtins(), Disabled: map[string]bool{disabled: true},
	}
	config.WithEnv(Object(names))
	tree, err := checker.ParseCheck(source, config)
	if err != nil {
		return nil, err
	}
	see(tree.Node)
	if err := optimizer.Optimize(&tree.Node, config); err != nil {
		return nil, err
	}
	return compiler.Compile(tree, config)
}
