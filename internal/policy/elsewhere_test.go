package policy

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// onlyAtHome are the exported names that no other package of the program names, sorted. It leaves out what Go exports
// for another reason. These are methods of interfaces, types that a name for other packages shows, structs of the ABI,
// and values of enumerations.
func (p *program) onlyAtHome() []string {
	exported := p.exported()
	next := append(p.implementing(), p.described()...)
	for path, files := range p.files {
		for _, file := range files {
			ast.Inspect(file, func(node ast.Node) bool {
				if name, ok := node.(*ast.Ident); ok {
					if used := origin(p.info.Uses[name]); exported[used] && used.Pkg().Path() != path {
						next = append(next, used)
					}
				}
				return true
			})
		}
	}
	excepted := map[types.Object]bool{}
	for len(next) > 0 {
		object := next[0]
		next = next[1:]
		if !excepted[object] {
			excepted[object] = true
			next = append(next, shows(object)...)
		}
	}
	var names []string
	for object := range exported {
		if object.Pkg().Name() != "main" && !excepted[object] && !isOfInterface(object) &&
			!isValueOfEnumeration(object) {
			names = append(names, fullName(object))
		}
	}
	return slices.Sorted(slices.Values(names))
}

// described are the structs of the ABI of guests: hostfuncs.structOf reads their Go names, which are those of the SDK.
func (p *program) described() (found []types.Object) {
	for name, instance := range p.info.Instances {
		if name.Name != "structOf" {
			continue
		}
		if described, ok := instance.TypeArgs.At(0).(*types.Named); ok {
			found = append(found, described.Obj())
		}
	}
	return found
}

// namedInTests are the names that tests select from something, with the folders of these tests. External tests of a
// package have "tests of " before their folder.
func namedInTests(t *testing.T) map[string][]string {
	t.Helper()
	users := map[string][]string{}
	for _, file := range goFiles(t) {
		if !file.isTest() {
			continue
		}
		user := file.directory()
		if strings.HasSuffix(file.syntax.Name.Name, "_test") {
			user = "tests of " + user
		}
		ast.Inspect(file.syntax, func(node ast.Node) bool {
			if selector, ok := node.(*ast.SelectorExpr); ok && !slices.Contains(users[selector.Sel.Name], user) {
				users[selector.Sel.Name] = append(users[selector.Sel.Name], user)
			}
			return true
		})
	}
	return users
}

// shows are the named types that a user of an object sees, and the methods of an interface.
func shows(object types.Object) (found []types.Object) {
	seen := map[types.Type]bool{}
	var look func(types.Type)
	look = func(t types.Type) {
		if seen[t] {
			return
		}
		seen[t] = true
		switch t := t.(type) {
		case *types.Named:
			found = append(found, t.Obj())
			for argument := range t.TypeArgs().Types() {
				look(argument)
			}
		case *types.Alias:
			found = append(found, t.Obj())
		case *types.Signature:
			look(t.Params())
			look(t.Results())
			for parameter := range t.TypeParams().TypeParams() {
				look(parameter.Constraint())
			}
		case *types.Tuple:
			for variable := range t.Variables() {
				look(variable.Type())
			}
		case *types.Struct:
			for field := range t.Fields() {
				if field.Exported() {
					look(field.Type())
				}
			}
		case *types.Interface:
			for method := range t.ExplicitMethods() {
				found = append(found, method)
			}
			for embedded := range t.EmbeddedTypes() {
				look(embedded)
			}
		case *types.Map:
			look(t.Key())
			look(t.Elem())
		case interface{ Elem() types.Type }: // pointers, slices, arrays and channels
			look(t.Elem())
		}
	}
	look(object.Type())
	if name, ok := object.(*types.TypeName); ok {
		look(name.Type().Underlying())
	}
	return found
}

// isOfInterface reports whether an object is a method of an interface type.
func isOfInterface(object types.Object) bool {
	method, ok := object.(*types.Func)
	return ok && method.Signature().Recv() != nil && types.IsInterface(method.Signature().Recv().Type())
}

// isValueOfEnumeration reports whether an object is a constant of a type of its own package: such constants have names
// of one form.
func isValueOfEnumeration(object types.Object) bool {
	constant, ok := object.(*types.Const)
	if !ok {
		return false
	}
	named, ok := constant.Type().(*types.Named)
	return ok && named.Obj().Pkg() == constant.Pkg()
}
