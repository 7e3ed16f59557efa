package compile

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/testbed"
)

// scope is what a value may mention: the file's parameters, then the names around the step, such as counters and a
// fragment's parameters.  Fragments do not see the names around their use.
type scope struct {
	outer *scope // nil for none
	names map[string]name
	// alone is set where roles and the results of steps are not visible.
	alone bool
	// mentioned are the places of the names that something mentions, which all scopes of a file share.
	mentioned map[*syntax.Node]bool
}

// name is what a word stands for.
type name struct {
	kind expression.Type // nil for a mapping
	// value is nil where it is known only in the run.
	value any
	// mapping is that of a parameter of type map, which is elsewhere, in a scope of its own.
	mapping *syntax.Node
	scope   *scope
	// word is that of a parameter that names one of several results, eps[$(i)], which is known only in the run.
	word string
	// hex is set if the scenario writes the value in hex.
	hex bool
	// show is the value as the scenario writes it, with its unit; nil for one without a unit.
	show func(value any) string
	// declared is where it is declared, for a name that something should mention.
	declared *syntax.Node
}

func newScope() *scope {
	return &scope{names: make(map[string]name), mentioned: make(map[*syntax.Node]bool)}
}

// inner returns a scope to add names to.
func (s *scope) inner() *scope {
	return &scope{outer: s, names: make(map[string]name), mentioned: s.mentioned, alone: s.alone}
}

// withoutSteps is the scope for what is independent of steps and roles, such as a threshold.
func (s *scope) withoutSteps() *scope {
	inner := s.inner()
	inner.alone = true
	return inner
}

// add declares a word; value nil means that it is known only in the run.
func (s *scope) add(word string, kind expression.Type, value any) {
	s.names[word] = name{kind: kind, value: value}
}

// find is what a word stands for; the zero name for nothing.
func (s *scope) find(word string) name {
	for ; s != nil; s = s.outer {
		if found, ok := s.names[word]; ok {
			return found
		}
	}
	return name{}
}

// words lists those of the scope and of the scopes around it.
func (s *scope) words() map[string]bool {
	words := make(map[string]bool)
	for ; s != nil; s = s.outer {
		for word := range s.names {
			words[word] = true
		}
	}
	return words
}

// mention notes that something mentions a word.
func (s *scope) mention(word string) {
	if node := s.find(word).declared; node != nil {
		s.mentioned[node] = true
	}
}

// resolve follows `$(name)` to the mapping that a fragment was given under that name.
func (s *scope) resolve(node *syntax.Node) (*syntax.Node, *scope) {
	for node.Kind == syntax.Scalar && strings.HasPrefix(node.Value, "$(") && strings.HasSuffix(node.Value, ")") {
		word := strings.TrimSpace(node.Value[2 : len(node.Value)-1])
		target := s.find(word)
		if target.mapping == nil {
			break
		}
		s.mention(word)
		node, s = target.mapping, target.scope
	}
	return node, s
}

// visible collects what an expression may mention at a place, with the values that are known. It collects only the
// given words: a scenario can have thousands of results, and an expression mentions a few.
func (rs *resolver) visible(at place, words map[string]bool) (expression.Names, expression.Env) {
	names, known := make(expression.Names, len(words)), make(expression.Env)
	for word := range words {
		found := at.scope.find(word)
		if found.value != nil {
			known[word] = found.value
		}
		if found.kind == nil && !at.scope.alone {
			found.kind = rs.stepName(at, word, words)
		}
		if found.kind != nil {
			names[word] = found.kind
		}
	}
	return names, known
}

// stepName is the type of a word that steps or roles have; nil for any other.
func (rs *resolver) stepName(at place, word string, words map[string]bool) expression.Type {
	if word == indexName && at.anyRole && rs.counted {
		return expression.Integer
	}
	if result := rs.resultNamed(at, word); result != nil {
		return result
	}
	if r := rs.roles[word]; r != nil {
		return rs.roleType(r, words)
	}
	return nil
}

// everything lists all words that an expression may have, for the hints of an error.
func (rs *resolver) everything(at place) map[string]bool {
	words := at.scope.words()
	if at.scope.alone {
		return words
	}
	for word := range rs.timeline.results {
		words[word] = true
	}
	for _, word := range rs.roleNames() {
		words[word] = true
	}
	return words
}

// ambiguous reports a name that several roles have, for a better message than "nothing named".
func (rs *resolver) ambiguous(at place, name string) []string {
	roles := rs.timeline.results[name]
	if len(roles) < 2 || at.scope.alone {
		return nil
	}
	return slices.Sorted(maps.Keys(roles))
}

// role is a role in the checker: one party, a counted role, or an instance of one.
type role struct {
	name string
	// instances are those of a counted role; group is the counted role of an instance, which has that index.
	instances []*role
	group     *role
	index     int

	executable executable
	buffers    map[string]bool
	// sizes are the bytes of its buffers, as far as they are known.
	sizes map[string]int
	// functions are those of its guest, nil when they are not known.
	functions map[string]Signature
}

// executable is what plays a role.
type executable int

const (
	steps executable = iota // of the file, one by one
	aGuest
	aProgram
)

// executableOf is what plays a role as the file has it.
func executableOf(written *ast.Role) executable {
	switch {
	case written.Guest != nil:
		return aGuest
	case written.Program != nil:
		return aProgram
	}
	return steps
}

// String is what messages call it.
func (p executable) String() string {
	return [...]string{steps: "driven by steps", aGuest: "a guest", aProgram: "a program"}[p]
}

// declared is how a role declares it.
func (p executable) declared() string {
	return [...]string{aGuest: "guest: {module: ..}", aProgram: "program: [..]"}[p]
}

// does is the key of the steps that work on it.
func (p executable) does() string { return [...]string{aGuest: "guest", aProgram: "program"}[p] }

// surroundingsOfRole are the members of a role that do not change in a run.
func surroundingsOfRole() expression.Object {
	return expression.Object{"device": members(deviceFacts), "provider": members(providerFacts)}
}

func members(facts []fact) expression.Object {
	object := expression.Object{}
	for _, each := range facts {
		object[each.name] = each.kind
	}
	return object
}

// providerFacts are the members of ROLE.provider.
var providerFacts = []fact{
	{"name", expression.String, "soft or verbs"},
	{"soft", expression.Boolean, "the role is on soft, in this process"},
	{"verbs", expression.Boolean, "the role is on an RDMA device"},
	{"link", expression.String, "soft's link: local, packets..; \"\" on an RDMA device"},
}

// deviceFacts are the members of ROLE.device.
var deviceFacts = []fact{
	{"name", expression.String, "name of the device"},
	{"driver", expression.String, "its driver: soft, rxe, siw, mlx5.."},
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

// bufferType is the type of a buffer in expressions, ROLE.NAME.
func bufferType() expression.Type {
	object := expression.Object{}
	names, _ := testbed.BufferMembers()
	for _, name := range names {
		object[name] = expression.Integer
	}
	return object
}

func (rs *resolver) roleType(r *role, words map[string]bool) expression.Type {
	object := surroundingsOfRole()
	object["name"], object["address"], object["counters"] = expression.String, expression.String,
		expression.MapOf(expression.Integer)
	if r.executable == aProgram {
		object["port"] = expression.Integer
	}
	for name := range r.buffers {
		object[name] = bufferType()
	}
	for word := range words {
		owners := rs.timeline.results[word]
		if result := cmp.Or(owners[r.name], owners[someRole], rs.groupResult(r, owners)); result != nil {
			object[word] = result
		}
	}
	if r.instances != nil {
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

// DataForms are the keys of data.
func DataForms() []ast.Key { return dataForms }

// Metrics are what thresholds can limit, each with its fields.
func Metrics() []ast.Key {
	keys := make([]ast.Key, len(metrics))
	for i := range metrics {
		m := &metrics[i]
		keys[i] = ast.Key{
			Name: m.name, Doc: m.doc + "; fields: " + strings.Join(namesOf(m.fields, (*metricField).key), ", "),
		}
	}
	return keys
}

// Requirements are the names that `requires`, `xfail` and the `if` of a threshold have.
func Requirements() []ast.Key {
	return append(documented("", surroundings),
		ast.Key{Name: "guest.NAME", Doc: "the file of that role's guest is there, when the guest is optional"},
		ast.Key{Name: "program.NAME", Doc: "the program of that role is on its host, when the program is optional"},
		ast.Key{
			Name: "ROLE.device",
			Doc:  "of each role, with the members that expressions of steps find there: dut.device.driver",
		},
		ast.Key{Name: "ROLE.provider", Doc: "likewise: dut.provider.verbs"})
}

// NamesInSteps are the names that expressions of steps have.
func NamesInSteps() []ast.Key {
	keys := []ast.Key{
		{
			Name: "NAME",
			Doc:  "a parameter, a value of a matrix or of for_each, a counter of repeat; in a fragment its parameters",
		},
		{Name: "NAME.FIELD", Doc: "a result that `as` named, when one role has it"},
		{Name: "ROLE.NAME.FIELD", Doc: "the same, of a role"},
		{
			Name: "NAME." + TookOfResult,
			Doc:  "how long the step took that made the result, on the provider's clock: $(NAME.took < 5ms)",
		},
		{Name: "ROLE[0]", Doc: "an instance of a counted role"},
		{Name: indexName, Doc: "of a counted role: which instance it is, from 0"},
		{Name: "ROLE.name", Doc: "the role's name"},
		{Name: "ROLE.address", Doc: "its IP address"},
		{Name: "ROLE.port", Doc: "of a program: a TCP port that was free when the case began, for it to listen on"},
		{
			Name: "ROLE.counters",
			Doc: "counters of its device (rdmarun explain counters), each as its growth since the case began. " +
				"If another process plays the role, only its own steps have them. " +
				"$(client.counters.packet_seq_err), if: 'packet_seq_err' in client.counters",
		},
		{Name: baselineName, Doc: "in thresholds: the metric of the baseline, with its fields; nil without one"},
	}
	names, docs := testbed.BufferMembers()
	for i := range names {
		keys = append(keys, ast.Key{Name: "ROLE.BUFFER." + names[i], Doc: docs[i]})
	}
	return slices.Concat(keys, documented("ROLE.device.", deviceFacts), documented("ROLE.provider.", providerFacts))
}

func documented(prefix string, facts []fact) []ast.Key {
	keys := make([]ast.Key, len(facts))
	for i, each := range facts {
		keys[i] = ast.Key{Name: prefix + each.name, Doc: each.doc}
	}
	return keys
}
