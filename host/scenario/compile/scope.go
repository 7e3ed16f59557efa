package compile

import (
	"maps"
	"slices"
	"strings"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
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
}

type bound struct {
	node  *syntax.Node
	scope *scope
}

// inner returns a scope to add names to.
func (s *scope) inner() *scope {
	return &scope{names: maps.Clone(s.names), consts: maps.Clone(s.consts), nodes: maps.Clone(s.nodes), words: maps.Clone(s.words), hex: maps.Clone(s.hex), from: maps.Clone(s.from), mentioned: s.mentioned}
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
func (c *compiler) visible(at place, words map[string]bool) expression.Names {
	names := make(expression.Names, len(words))
	for word := range words {
		if t := c.nameType(at, word, words); t != nil {
			names[word] = t
		}
	}
	return names
}

// everything lists all words that could stand in an expression, for the hints of an error.
func (c *compiler) everything(at place) map[string]bool {
	words := make(map[string]bool)
	for name := range at.scope.names {
		words[name] = true
	}
	for name := range c.timeline.results {
		words[name] = true
	}
	for name := range c.roles {
		words[name] = true
	}
	return words
}

func (c *compiler) nameType(at place, word string, words map[string]bool) expression.Type {
	if t, ok := at.scope.names[word]; ok {
		return t
	}
	if word == indexName && at.anyRole && len(c.instances) > 0 {
		return expression.Integer
	}
	if resultType := c.resultNamed(at, word); resultType != nil {
		return resultType
	}
	if r := c.roles[word]; r != nil {
		return c.roleType(r, words)
	}
	return nil
}

// ambiguous reports a name that several roles have, for a better message than "nothing named".
func (c *compiler) ambiguous(name string) []string {
	roles := c.timeline.results[name]
	if len(roles) < 2 {
		return nil
	}
	return slices.Sorted(maps.Keys(roles))
}

func (c *compiler) report(p *problem, span diag.Span) {
	c.errors.Report(p.code, span, "%s", p.message).WithHint("%s", p.hint)
}
