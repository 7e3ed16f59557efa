package compile

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
)

// Fixture is what cases need: it is set up before their steps, and torn down after them.
type Fixture struct {
	Name string // as the file calls it: NAME, or PREFIX.NAME
	// Shared is set if the cases that have the same Fixture may share what it has made.
	Shared bool
	// Origin is, of one that cases of all files may share, the imported file that has it; "" of any other.
	Origin   string
	Setup    []*Step
	Teardown []*Step
}

// fixture is one that was compiled: for all cases of one combination of the file's matrix that need it.
type fixture struct {
	*Fixture
	// needs are those that are set up before it, each behind those that it needs itself.
	needs []*fixture
	// width is that of its scope (ast.Fixture).
	width int
	// timeline is what it has made, and what it needs; facts are those of its own setup.
	timeline *timeline
	facts    *facts
}

// needs compiles the fixtures of a list, each behind what it needs itself, and leaves out those that are there already.
func (x *expander) needs(needs []*syntax.Node, there []*fixture) (list []*fixture) {
	list = slices.Clip(there)
	for i, node := range needs {
		if first := slices.IndexFunc(needs, func(n *syntax.Node) bool { return n.Value == node.Value }); first < i {
			x.errors.Report(diag.NameTaken, node.Span(), "the fixture %q occurs twice", node.Value)
			continue
		}
		needed := x.fixture(node)
		if needed == nil {
			continue
		}
		for _, each := range append(slices.Clone(needed.needs), needed) {
			if !slices.Contains(list, each) {
				list = append(list, each)
			}
		}
	}
	return list
}

// fixture compiles one by its name; nil after saying why not.
func (x *expander) fixture(node *syntax.Node) *fixture {
	written, from := lookUp(x, node, fixtureKind)
	if written == nil {
		return nil
	}
	if at := slices.Index(x.compiling, written); at >= 0 {
		var path []string
		for _, each := range append(slices.Clone(x.compiling[at:]), written) {
			path = append(path, each.Name.Value)
		}
		x.errors.Report(
			diag.FixtureCycle, node.Span(), "the fixture %q needs itself: %s", node.Value, strings.Join(path, " -> "),
		).
			WithHint("leave one of these needs out, or put what both share into a third fixture")
		return nil
	}
	x.needed[written] = true
	return x.make(written, from, x.prefix+node.Value)
}

// make compiles a fixture, once for all that need it.
func (x *expander) make(written *ast.Fixture, from *module, name string) *fixture {
	if made := x.compiled[written]; made != nil {
		return made
	}
	current, timeline, facts, prefix := x.current, x.timeline, x.facts, x.prefix
	defer func() { x.current, x.timeline, x.facts, x.prefix = current, timeline, facts, prefix }()
	x.current, x.timeline, x.facts, x.prefix = from, newTimeline(), newFacts(), name[:strings.LastIndex(name, ".")+1]
	x.compiling = append(x.compiling, written)
	made := &fixture{
		Fixture: &Fixture{Name: name, Shared: written.Shared()}, needs: x.needs(written.Needs, nil),
		width: written.Width(),
	}
	x.compiling = x.compiling[:len(x.compiling)-1]
	if ast.Scopes()[made.width] == ast.ScopeRun {
		made.Origin = from.file.Root.Source.Name
		if !from.file.IsLibrary() {
			x.errors.Report(
				diag.FixtureScope, written.Scope.Span(),
				"no other file can import the fixture %q, for this one has cases", name,
			).
				WithHint("put it into a file of fragments and fixtures, which others import; or write scope: file")
		}
	}
	for _, each := range made.needs {
		if narrow := ast.Scopes()[each.width]; made.width > each.width {
			x.errors.Report(
				diag.FixtureScope, written.Scope.Span(),
				"the fixture %q is shared and needs %q, of which each %s has its own", name, each.Name, narrow,
			).
				WithHint("give %s the scope %s, too, or %s the scope %s", each.Name, written.Scope.Value, name, narrow)
			break
		}
	}
	x.have(made.needs)
	before := *x.facts
	scope := from.global.inner()
	made.Setup = x.stepList(written.Setup, scope)
	made.timeline, made.facts = x.timeline, x.facts.since(&before)
	x.timeline, x.facts = made.timeline.clone(), newFacts()
	made.Teardown = x.stepList(written.Teardown, scope)
	x.compiled[written], x.fixtures = made, append(x.fixtures, made)
	return made
}

// have lets steps use what fixtures have made.
func (x *expander) have(fixtures []*fixture) {
	for _, each := range fixtures {
		x.timeline.merge(each.timeline)
		x.facts.merge(each.facts)
	}
}

// makes is the hint on an object that a step names and nothing has made: a fixture would; "" where none does.
func (rs *resolver) makes(object *verb.Object, role, name string) string {
	for _, each := range rs.fixtures {
		if each.timeline.has(object, role, name) && strings.Count(each.Name, ".") < 2 { // which the file can name
			return fmt.Sprintf("the fixture %s makes it: needs: [%s]", each.Name, each.Name)
		}
	}
	return ""
}

// programs are the fixtures as a run has them: those that are shared come first.
func programs(fixtures []*fixture) (list []*Fixture) {
	for _, each := range fixtures {
		list = append(list, each.Fixture)
	}
	slices.SortStableFunc(list, func(a, b *Fixture) int { return cmp.Compare(b.rank(), a.rank()) })
	return list
}

func (f *Fixture) rank() int {
	if f.Shared {
		return 1
	}
	return 0
}

// family sets which cases may share fixtures with one that was compiled: those of one combination of the file's
// matrix, which have this number. If all fixtures have scope run, more cases of the run share them. Their fixtures
// must come from the same files, imported under the same prefixes, in the same surroundings.
func (x *expander) family(c *Case, number int, surroundings func() string) {
	var shared []string
	across := true
	for _, each := range c.Fixtures {
		if each.Shared {
			prefix := each.Name[:strings.LastIndexByte(each.Name, '.')+1]
			shared, across = append(shared, prefix+" "+each.Origin), across && each.Origin != ""
		}
	}
	if len(shared) == 0 {
		return
	}
	slices.Sort(shared)
	c.Family, c.Across = strconv.Itoa(number), across
	if across {
		c.Family = fmt.Sprintf("%q %s", slices.Compact(shared), surroundings())
	}
}

// surroundings are what fixtures of imported files depend on in the file that imports them. They are its roles with
// buffers, devices and guests, and the defaults of its steps.
func (x *expander) surroundings(roles []testbed.RoleConfig, params []Binding, combo combination) string {
	sum := sha256.New()
	for _, role := range roles {
		if role.Guest != nil { // what it is, not where
			copied := *role.Guest
			fmt.Fprintf(sum, "%+v", copied.Script)
			copied.Script, role.Guest = nil, nil
			fmt.Fprintf(sum, "%+v", copied)
		}
		if role.Program != nil {
			fmt.Fprintf(sum, "%+v", *role.Program)
			role.Program = nil
		}
		fmt.Fprintf(sum, "%+v", role)
	}
	if defaults := x.file.Root.Get("defaults"); defaults != nil {
		defaults.Write(sum)
		fmt.Fprintf(sum, "%+v%s", params, combo.id()) // which they may name
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// ownFixtures compiles the fixtures of the file, also those that no case needs.
func (x *expander) ownFixtures() {
	for _, written := range x.file.Fixtures {
		x.make(written, x.main, written.Name.Value)
	}
}

// unusedFixtures warns of fixtures that nothing needs.
func (x *expander) unusedFixtures() {
	if x.file.IsLibrary() || x.options.Wrong || x.errors.Len() > 0 {
		return
	}
	for _, each := range x.file.Fixtures {
		if !x.needed[each] {
			x.errors.Report(diag.Unused, each.Name.Span(), "no case needs the fixture %q", each.Name.Value).
				WithHint(
					"needs: [%s], in a case, or next to \"cases\" for all of them; remove it if it is not used",
					each.Name.Value,
				)
		}
	}
}
