package compile

import (
	"maps"
	"slices"
	"strings"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/testbed"
)

// scope is what a value may mention: the file's parameters, then what stands around the step, such as
// counters and a fragment's parameters.  Fragments do not see the names around their use.
type scope struct {
	names  expression.Names
	consts expression.Env
	// nodes are parameters of type map: mappings that stand elsewhere, with the scope they stand in.
	nodes map[string]bound
	// words are those of parameters that name one of several results, eps[$(i)], which only the run will tell.
	words map[string]string
	// hex are the names whose values the scenario writes in hex.
	hex map[string]bool
	// from are the places of names that something should mention; mentioned are those that something did, which all scopes
	// of a file share.
	from      map[string]*syntax.Node
	mentioned map[*syntax.Node]bool
	// alone tells that roles and what steps make are not visible besides.
	alone bool
}

type bound struct {
	node  *syntax.Node
	scope *scope
}

// inner returns a scope to add names to.
func (s *scope) inner() *scope {
	return &scope{names: maps.Clone(s.names), consts: maps.Clone(s.consts), nodes: maps.Clone(s.nodes), words: maps.Clone(s.words), hex: maps.Clone(s.hex), from: maps.Clone(s.from), mentioned: s.mentioned, alone: s.alone}
}

// withoutSteps is the scope for what knows nothing of steps and roles, such as a threshold.
func (s *scope) withoutSteps() *scope {
	inner := s.inner()
	inner.alone = true
	return inner
}

// add declares a name; value nil means that only the run will tell.
func (s *scope) add(name string, t expression.Type, value any) {
	s.names[name] = t
	delete(s.consts, name)
	delete(s.nodes, name)
	delete(s.words, name)
	delete(s.hex, name)
	delete(s.from, name)
	if value != nil {
		s.consts[name] = value
	}
}

// declaredAt notes where a name is declared that something should mention.
func (s *scope) declaredAt(name string, node *syntax.Node) { s.from[name] = node }

// mention notes that something mentions a name.
func (s *scope) mention(name string) {
	if node := s.from[name]; node != nil {
		s.mentioned[node] = true
	}
}

// writtenInHex notes that the value of a name is written in hex.
func (s *scope) writtenInHex(name string) {
	if s.hex == nil {
		s.hex = make(map[string]bool)
	}
	s.hex[name] = true
}

func (s *scope) addNode(name string, b bound) {
	delete(s.names, name)
	delete(s.consts, name)
	delete(s.words, name)
	s.nodes[name] = b
}

// resolve follows `$(name)` to the mapping that a fragment was given under that name.
func (s *scope) resolve(node *syntax.Node) (*syntax.Node, *scope) {
	for node.Kind == syntax.Scalar && strings.HasPrefix(node.Value, "$(") && strings.HasSuffix(node.Value, ")") {
		name := strings.TrimSpace(node.Value[2 : len(node.Value)-1])
		target, ok := s.nodes[name]
		if !ok {
			break
		}
		s.mention(name)
		node, s = target.node, target.scope
	}
	return node, s
}

// visible puts together what an expression may mention at a place, as far as it is among the given
// words: a scenario can have thousands of results, and an expression mentions a few.
func (rs *resolver) visible(at place, words map[string]bool) expression.Names {
	names := make(expression.Names, len(words))
	for word := range words {
		if t := rs.nameType(at, word, words); t != nil {
			names[word] = t
		}
	}
	return names
}

// everything lists all words that could stand in an expression, for the hints of an error.
func (rs *resolver) everything(at place) map[string]bool {
	words := make(map[string]bool)
	for name := range at.scope.names {
		words[name] = true
	}
	if at.scope.alone {
		return words
	}
	for name := range rs.timeline.results {
		words[name] = true
	}
	for name := range rs.roles {
		words[name] = true
	}
	return words
}

func (rs *resolver) nameType(at place, word string, words map[string]bool) expression.Type {
	if t, ok := at.scope.names[word]; ok {
		return t
	}
	if at.scope.alone {
		return nil
	}
	if word == indexName && at.anyRole && len(rs.instances) > 0 {
		return expression.Integer
	}
	if resultType := rs.resultNamed(at, word); resultType != nil {
		return resultType
	}
	if r := rs.roles[word]; r != nil {
		return rs.roleType(r, words)
	}
	return nil
}

// ambiguous reports a name that several roles have, for a better message than "nothing named".
func (rs *resolver) ambiguous(at place, name string) []string {
	roles := rs.timeline.results[name]
	if len(roles) < 2 || at.scope.alone {
		return nil
	}
	return slices.Sorted(maps.Keys(roles))
}

func (d *decoder) report(p *problem, span diag.Span) {
	d.errors.Report(p.code, span, "%s", p.message).WithHint("%s", p.hint)
}

// role is a role as the checker knows it: one party, a counted role, or an instance of one.
type role struct {
	name string
	// count is how many instances a counted role has, 0 for one party; group is the counted role of an instance,
	// which has that index.
	count int
	group string
	index int

	guest   bool
	buffers map[string]bool
	// sizes are the bytes of its buffers, as far as they are known.
	sizes map[string]int
	// functions are those of its guest, nil when they are not known.
	functions map[string]Signature
}

// deviceType lists the members of a role's device in expressions.
func deviceType() expression.Type {
	object := expression.Object{}
	for _, each := range deviceFacts {
		object[each.name] = each.kind
	}
	return object
}

// deviceFacts are the members of ROLE.device.
var deviceFacts = []fact{
	{"name", expression.String, "name of the device"},
	{"atomic", expression.Boolean, "it can do atomic operations"},
	{"timestamps", expression.Boolean, "its completions can have time stamps"},
	{"iwarp", expression.Boolean, "its transport is RDMA over TCP"},
	{"max_qp_rd_atom", expression.Integer, "READs and atomics at once that a queue pair answers"},
	{"max_qp_init_rd_atom", expression.Integer, "READs and atomics at once that a queue pair begins"},
	{"max_qp", expression.Integer, "queue pairs"},
	{"max_qp_wr", expression.Integer, "requests that a queue holds"},
	{"max_sge", expression.Integer, "buffers of a request"},
	{"max_cqe", expression.Integer, "completions that a queue holds"},
}

// bufferType is the type of a buffer, ROLE.NAME: testbed.BufferView as a record.
func bufferType() expression.Type {
	object := expression.Object{}
	names, _ := testbed.BufferMembers()
	for _, name := range names {
		object[name] = expression.Integer
	}
	return object
}

func (rs *resolver) roleType(r *role, words map[string]bool) expression.Type {
	object := expression.Object{"name": expression.String, "address": expression.String, "device": deviceType(), "counters": expression.List(expression.String)}
	for name := range r.buffers {
		object[name] = bufferType()
	}
	for word := range words {
		owners := rs.timeline.results[word]
		if resultType, ok := owners[r.name]; ok {
			object[word] = resultType
		} else if resultType, ok := owners[someRole]; ok {
			object[word] = resultType
		} else if resultType := rs.groupResult(r, owners); resultType != nil {
			object[word] = resultType
		}
	}
	if r.count > 0 {
		return expression.List(object)
	}
	return object
}

// timeline is what the steps so far have made, in the order in which they run.
type timeline struct {
	// results by name, with the roles that have one of that name ("" for none).
	results map[string]map[string]expression.Type
	// made are endpoints, other objects and faults.
	made map[madeBy]bool
}

func newTimeline() *timeline {
	return &timeline{results: make(map[string]map[string]expression.Type), made: make(map[madeBy]bool)}
}

// clone lets several cases begin where the setup has ended.
func (t *timeline) clone() *timeline {
	copied := newTimeline()
	for name, roles := range t.results {
		copied.results[name] = maps.Clone(roles)
	}
	copied.made = maps.Clone(t.made)
	return copied
}

// merge adds what another timeline made, for steps that follow on several.
func (t *timeline) merge(other *timeline) {
	for name, roles := range other.results {
		for role, resultType := range roles {
			t.addResult(role, name, resultType)
		}
	}
	maps.Copy(t.made, other.made)
}

func (t *timeline) addResult(role, name string, resultType expression.Type) {
	if t.results[name] == nil {
		t.results[name] = make(map[string]expression.Type)
	}
	t.results[name][role] = resultType
}

func keyNames(keys []ast.Key) []string {
	names := make([]string, len(keys))
	for i := range keys {
		names[i] = keys[i].Name
	}
	return names
}

// Matchers are the keys with which `expect` compares.
func Matchers() []ast.Key { return matchers }

// DataForms are the keys of data.
func DataForms() []ast.Key { return dataForms }

// Metrics are what thresholds can limit, each with its fields.
func Metrics() []ast.Key {
	keys := make([]ast.Key, len(metrics))
	for i := range metrics {
		m := &metrics[i]
		keys[i] = ast.Key{Name: m.name, Doc: m.doc + "; fields: " + strings.Join(m.fieldNames(), ", ")}
	}
	return keys
}

// Requirements are the names that `requires`, `xfail` and the `if` of a threshold have.
func Requirements() []ast.Key {
	return append(documented("", surroundings), ast.Key{Name: "guest.NAME", Doc: "the file of that role's guest is there, when the guest is optional"})
}

// NamesInSteps are the names that expressions of steps have.
func NamesInSteps() []ast.Key {
	keys := []ast.Key{
		{Name: "NAME", Doc: "a parameter, a value of a matrix or of for_each, a counter of repeat; in a fragment its parameters"},
		{Name: "NAME.FIELD", Doc: "a result that `as` named, when one role has it"},
		{Name: "ROLE.NAME.FIELD", Doc: "the same, of a role"},
		{Name: "NAME." + TookOfResult, Doc: "how long the step took that made the result, on the provider's clock: $(NAME.took < 5ms)"},
		{Name: "ROLE[0]", Doc: "an instance of a counted role"},
		{Name: indexName, Doc: "of a counted role: which instance it is, from 0"},
		{Name: "ROLE.name", Doc: "the role's name"},
		{Name: "ROLE.address", Doc: "its IP address"},
		{Name: "ROLE.counters", Doc: "names of the counters of its device, for check"},
		{Name: baselineName, Doc: "in thresholds: the metric of the baseline, with its fields; nil without one"},
	}
	names, docs := testbed.BufferMembers()
	for i := range names {
		keys = append(keys, ast.Key{Name: "ROLE.BUFFER." + names[i], Doc: docs[i]})
	}
	return append(keys, documented("ROLE.device.", deviceFacts)...)
}

func documented(prefix string, facts []fact) []ast.Key {
	keys := make([]ast.Key, len(facts))
	for i, each := range facts {
		keys[i] = ast.Key{Name: prefix + each.name, Doc: each.doc}
	}
	return keys
}
