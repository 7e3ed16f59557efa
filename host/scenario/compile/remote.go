package compile

import (
	"slices"
	"strings"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// remote compiles the peer's memory: {addr, rkey, length}, ROLE.NAME, or an expression that yields a
// record with addr and rkey.
func (c *compiler) remote(argument *verb.Argument, node *syntax.Node, at place) *Value {
	node, at.scope = at.scope.resolve(node)
	switch {
	case node.Kind == syntax.Mapping:
		return c.remoteForm(node, at)
	case node.Kind == syntax.Scalar && expression.Contains(node.Value):
		pieces, unterminated := expression.Scan(node.Value)
		if unterminated >= 0 || len(pieces) != 1 {
			break
		}
		raw, kind := c.compile(node, pieces[0], node.Locate(pieces[0].Offset, pieces[0].Offset+len(pieces[0].Text)), at)
		if raw == nil {
			return nil
		}
		if !accepts(argument, kind) {
			c.errors.Report(diag.ExpressionType, raw.Span, "%s wants a record with addr and rkey, and this is %s", argument.Name, kind)
			return nil
		}
		return c.converted(raw, remoteFrom)
	case node.Kind == syntax.Scalar && strings.Contains(node.Value, "."):
		return c.remoteBuffer(argument, node, at)
	}
	c.errors.Report(diag.WrongType, node.Span(), "%s wants remote memory", argument.Name).
		WithHint("write {addr: .., rkey: ..}, ROLE.BUFFER, or an expression such as $(adv), a record")
	return nil
}

func (c *compiler) remoteForm(node *syntax.Node, at place) *Value {
	parts := make([]*Value, 3)
	arguments := []*verb.Argument{
		{Name: "addr", Type: verb.Unsigned, Required: true},
		{Name: "rkey", Type: verb.Integer, Required: true, Max: 1<<32 - 1},
		{Name: "length", Type: verb.Size},
	}
	good := true
	for _, pair := range node.Pairs {
		index := slices.IndexFunc(arguments, func(a *verb.Argument) bool { return a.Name == pair.Key.Value })
		if index < 0 {
			c.errors.Report(diag.UnknownKey, pair.Key.Span(), "remote memory has no key %q", pair.Key.Value).WithHint("there are: addr, rkey, length")
			good = false
			continue
		}
		parts[index] = c.scalar(arguments[index], pair.Value, at)
		good = good && parts[index] != nil
	}
	for i, argument := range arguments {
		if argument.Required && node.Get(argument.Name) == nil {
			c.errors.Report(diag.MissingKey, node.Span(), "remote memory needs %q", argument.Name)
			good = false
		}
		if parts[i] == nil {
			parts[i] = constant(-1, node.Span())
		}
	}
	if !good {
		return nil
	}
	return c.combined(node.Span(), parts, func(v []any) (any, error) {
		return verb.RemoteMemory{Address: v[0].(uint64), RKey: uint32(v[1].(int)), Length: v[2].(int)}, nil
	})
}

// remoteBuffer is ROLE.NAME: the runner hands the address over, as `$(ROLE.NAME)` would.
func (c *compiler) remoteBuffer(argument *verb.Argument, node *syntax.Node, at place) *Value {
	name := c.bufferName(argument, node, at)
	if name == nil {
		return nil
	}
	known, _ := name.Constant()
	buffer := known.(verb.BufferName)
	return &Value{Span: node.Span(), compute: func(env expression.Env) (any, error) {
		return remoteFrom(c.roleObject(env, buffer.Role)[buffer.Name])
	}}
}

// remoteFrom reads addr, rkey and, where there is one, the length out of a record.
func remoteFrom(value any) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		address, hasAddress := whole(v["addr"])
		rkey, hasKey := v["rkey"].(int)
		if !hasAddress || !hasKey {
			break
		}
		length := -1
		for _, name := range []string{"length", "size"} {
			if n, ok := whole(v[name]); ok {
				if fits, small := n.(int); small {
					length = fits
				}
			}
		}
		return verb.RemoteMemory{Address: Bits(address), RKey: uint32(rkey), Length: length}, nil
	case nil:
		return nil, wrongType("remote memory", "nothing", "the step that sets it has not run")
	}
	return nil, wrongType("remote memory", expression.Word(value), "a record needs addr and rkey: decode with fields [{u64: addr}, {u32: rkey}]")
}
