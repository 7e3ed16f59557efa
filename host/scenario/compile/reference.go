package compile

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// bufferName compiles the name of a buffer: of the step's role, or ROLE.NAME.
func (c *compiler) bufferName(argument *verb.Argument, node *syntax.Node, at place) *Value {
	value := c.scalar(&verb.Argument{Name: argument.Name, Type: verb.Buffer}, node, at)
	return c.converted(value, func(v any) (any, error) {
		return c.parseBuffer(v.(string), at.role)
	})
}

// parseBuffer checks a buffer's name as far as its role is known.
func (c *compiler) parseBuffer(text, roleName string) (any, error) {
	name := verb.BufferName{Name: text}
	if owner, rest, dotted := strings.Cut(text, "."); dotted {
		name = verb.BufferName{Role: owner, Name: rest}
		roleName = owner
		if bad := c.notParty(owner); bad != nil {
			return nil, bad
		}
	}
	if r := c.role(roleName); r != nil && !r.buffers[name.Name] {
		hint := diag.DidYouMean(name.Name, sortedKeys(r.buffers))
		if hint == "" {
			hint = c.whoHas(name.Name)
		}
		return nil, &problem{diag.UnknownBuffer, "role " + quoted(r.name) + " has no buffer " + quoted(name.Name), hint}
	}
	return name, nil
}

func (c *compiler) whoHas(buffer string) string {
	for _, name := range sortedKeys(c.roles) {
		if c.roles[name].buffers[buffer] {
			return "role " + name + " has one: " + name + "." + buffer
		}
	}
	return ""
}

// content compiles a buffer or data.
func (c *compiler) content(argument *verb.Argument, node *syntax.Node, at place) *Value {
	resolved, scope := at.scope.resolve(node)
	if resolved.Kind == syntax.Mapping {
		return c.data(argument.Name, resolved, at.in(scope))
	}
	return c.bufferName(argument, node, at)
}

// endpoint compiles the name of an endpoint, which a step before must have made.
func (c *compiler) endpoint(argument *verb.Argument, node *syntax.Node, at place) *Value {
	value := c.scalar(argument, node, at)
	if value == nil {
		return nil
	}
	name, made := c.isMade(verb.NewEndpoint, node, value, at)
	if made {
		return value
	}
	d := c.errors.Report(diag.UnknownEndpoint, value.Span, "role %q has no endpoint %q here", at.role, name)
	switch names := c.timeline.names(verb.NewEndpoint, at.role); {
	case diag.DidYouMean(name, names) != "":
		d.WithHint("%s", diag.DidYouMean(name, names))
	case len(names) > 0:
		d.WithHint("%s", diag.ThereAre(names))
	default:
		d.WithHint("make it first: {role: %s, create_ep: {..}, as: %s}", at.role, name)
	}
	return value
}

// peer compiles a role, an IP address or a host name.
func (c *compiler) peer(argument *verb.Argument, node *syntax.Node, at place) *Value {
	value := c.scalar(argument, node, at)
	if value == nil || expression.Contains(node.Value) {
		return value
	}
	name := node.Value
	if r := c.role(name); r != nil && r.count > 0 {
		c.report(c.notParty(name), node.Span())
		return nil
	}
	if _, err := netip.ParseAddr(name); err == nil || c.role(name) != nil || strings.Contains(name, ".") || name == "localhost" {
		return value
	}
	c.errors.Report(diag.UnknownRole, node.Span(), "there is no role %q", name).
		WithHint("%s", hintOr(diag.DidYouMean(name, sortedKeys(c.roles)), "a host name has a dot in it here; give others by a parameter"))
	return nil
}

// queuePair compiles attributes of a queue pair over others.
func (c *compiler) queuePair(base *Value, node *syntax.Node, at place) *Value {
	node, at.scope = at.scope.resolve(node)
	if node.Kind != syntax.Mapping && c.abstract {
		return nil // a parameter whose value the use of the fragment will give
	}
	if node.Kind != syntax.Mapping {
		c.errors.Report(diag.WrongShape, node.Span(), "qp is a mapping: {max_send_wr: 16}")
		return nil
	}
	arguments := verb.QueuePairArguments()
	var keys []string
	parts := []*Value{base}
	for _, pair := range node.Pairs {
		index := slices.IndexFunc(arguments, func(a verb.Argument) bool { return a.Name == pair.Key.Value })
		if index < 0 {
			var known []string
			for _, argument := range arguments {
				known = append(known, argument.Name)
			}
			c.errors.Report(diag.UnknownKey, pair.Key.Span(), "a queue pair has no attribute %q", pair.Key.Value).
				WithHint("%s", hintOr(diag.DidYouMean(pair.Key.Value, known), diag.ThereAre(known)))
			continue
		}
		read := c.scalar
		switch {
		case arguments[index].Type.NamesObject():
			read = c.objectName
		case arguments[index].Type == verb.Words:
			read = c.wordList
		}
		if value := read(&arguments[index], pair.Value, at); value != nil {
			keys, parts = append(keys, pair.Key.Value), append(parts, value)
		}
	}
	return c.combined(node.Span(), parts, func(values []any) (any, error) {
		given := make(map[string]any, len(keys))
		for i, key := range keys {
			given[key] = values[i+1]
		}
		return values[0].(verb.QueuePairAttributes).With(given)
	})
}
