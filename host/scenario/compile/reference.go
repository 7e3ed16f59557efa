package compile

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
	"rdmarun/rdmacore"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// bufferName compiles the name of a buffer: of the step's role, or ROLE.NAME.
func (d *decoder) bufferName(argument *verb.Argument, node *syntax.Node, at place) *Value {
	value := d.scalar(&verb.Argument{Name: argument.Name, Type: verb.Buffer}, node, at)
	return d.converted(value, func(v any) (any, error) {
		return d.parseBuffer(v.(string), at.role)
	})
}

// parseBuffer checks a buffer's name as far as its role is known.
func (rs *resolver) parseBuffer(text, roleName string) (any, error) {
	name := verb.BufferName{Name: text}
	if owner, rest, dotted := strings.Cut(text, "."); dotted {
		name = verb.BufferName{Role: owner, Name: rest}
		roleName = owner
		if bad := rs.notParty(owner); bad != nil {
			return nil, bad
		}
	}
	if r := rs.role(roleName); r != nil && !r.buffers[name.Name] {
		hint := diag.DidYouMean(name.Name, sortedKeys(r.buffers))
		if hint == "" {
			hint = rs.whoHas(name.Name)
		}
		return nil, &problem{diag.UnknownBuffer, "role " + quoted(r.name) + " has no buffer " + quoted(name.Name), hint}
	}
	return name, nil
}

func (rs *resolver) whoHas(buffer string) string {
	for _, name := range sortedKeys(rs.roles) {
		if rs.roles[name].buffers[buffer] {
			return "role " + name + " has one: " + name + "." + buffer
		}
	}
	return ""
}

// content compiles a buffer or data.
func (d *decoder) content(argument *verb.Argument, node *syntax.Node, at place) *Value {
	resolved, scope := at.scope.resolve(node)
	if resolved.Kind == syntax.Mapping {
		return d.data(argument, resolved, at.in(scope))
	}
	return d.bufferName(argument, node, at)
}

// endpoint compiles the name of an endpoint, which a step before must have made.
func (d *decoder) endpoint(argument *verb.Argument, node *syntax.Node, at place) *Value {
	value := d.scalar(argument, node, at)
	if value == nil {
		return nil
	}
	name, made := d.isMade(verb.NewEndpoint, node, value, at)
	if made {
		return value
	}
	wrong := d.errors.Report(diag.UnknownEndpoint, value.Span, "role %q has no endpoint %q here", at.role, name)
	switch names := d.timeline.names(verb.NewEndpoint, at.role); {
	case diag.DidYouMean(name, names) != "":
		wrong.WithHint("%s", diag.DidYouMean(name, names))
	case len(names) > 0:
		wrong.WithHint("%s", diag.ThereAre(names))
	default:
		wrong.WithHint("make it first: {role: %s, create_ep: {..}, as: %s}", at.role, name)
	}
	return value
}

// peer compiles a role, an IP address or a host name.
func (d *decoder) peer(argument *verb.Argument, node *syntax.Node, at place) *Value {
	value := d.scalar(argument, node, at)
	if value == nil || expression.Contains(node.Value) {
		return value
	}
	name := node.Value
	if r := d.role(name); r != nil && r.count > 0 {
		d.report(d.notParty(name), node.Span())
		return nil
	}
	if _, err := netip.ParseAddr(name); err == nil || d.role(name) != nil || strings.Contains(name, ".") || name == "localhost" {
		return value
	}
	d.errors.Report(diag.UnknownRole, node.Span(), "there is no role %q", name).
		WithHint("%s", hintOr(diag.DidYouMean(name, sortedKeys(d.roles)), "a host name has a dot in it here; give others by a parameter"))
	return nil
}

// queuePair compiles attributes of a queue pair over others.
func (d *decoder) queuePair(base *Value, node *syntax.Node, at place) *Value {
	node, at.scope = at.scope.resolve(node)
	if node.Kind != syntax.Mapping && d.abstract {
		return nil // a parameter whose value the use of the fragment will give
	}
	if node.Kind != syntax.Mapping {
		d.errors.Report(diag.WrongShape, node.Span(), "qp is a mapping: {max_send_wr: 16}")
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
			d.errors.Report(diag.UnknownKey, pair.Key.Span(), "a queue pair has no attribute %q", pair.Key.Value).
				WithHint("%s", hintOr(diag.DidYouMean(pair.Key.Value, known), diag.ThereAre(known)))
			continue
		}
		read := d.scalar
		switch {
		case arguments[index].Type.NamesObject():
			read = d.objectName
		case arguments[index].Type == verb.Words:
			read = d.wordList
		}
		if value := read(&arguments[index], pair.Value, at); value != nil {
			keys, parts = append(keys, pair.Key.Value), append(parts, value)
		}
	}
	return d.combined(node.Span(), parts, func(values []any) (any, error) {
		given := make(map[string]any, len(keys))
		for i, key := range keys {
			given[key] = values[i+1]
		}
		return values[0].(verb.QueuePairAttributes).With(given)
	})
}

// faultName compiles the name of a fault, which a step before must have made.
func (d *decoder) faultName(argument *verb.Argument, node *syntax.Node, at place) *Value {
	value := d.scalar(argument, node, at)
	if value == nil {
		return nil
	}
	if name, made := d.isMade(verb.NewFault, node, value, at); !made {
		d.errors.Report(diag.UnknownFault, value.Span, "there is no fault %q here", name).
			WithHint("%s", hintOr(diag.DidYouMean(name, d.timeline.names(verb.NewFault, someRole)), "make it first: {fault: {..}, as: "+name+"}"))
		return nil
	}
	return value
}

// roleName compiles the name of a role.
func (d *decoder) roleName(argument *verb.Argument, node *syntax.Node, at place) *Value {
	value := d.scalar(argument, node, at)
	if value == nil {
		return nil
	}
	if name, known := value.Constant(); known && !d.abstract && !d.isParty(name.(string), value.Span) {
		return nil
	}
	return value
}

// roleList compiles a list of two roles.
func (d *decoder) roleList(argument *verb.Argument, node *syntax.Node, at place) *Value {
	node, at.scope = at.scope.resolve(node)
	if node.Kind != syntax.Sequence || len(node.Items) != 2 {
		d.errors.Report(diag.WrongShape, node.Span(), "%s wants a list of two roles", argument.Name).WithHint("[client, server]")
		return nil
	}
	role := &verb.Argument{Name: argument.Name, Type: verb.Role}
	return d.list(node, func(item *syntax.Node) *Value { return d.roleName(role, item, at) }, func(values []any) (any, error) {
		if values[0] == values[1] {
			return nil, &problem{diag.Conflict, "a link has two ends, and this is " + quoted(values[0].(string)) + " twice", ""}
		}
		return []string{values[0].(string), values[1].(string)}, nil
	})
}

// rights compiles a list of access rights; an empty one is no right at all.
func (d *decoder) rights(argument *verb.Argument, node *syntax.Node, _ place) *Value {
	if node.Kind != syntax.Sequence {
		d.errors.Report(diag.WrongShape, node.Span(), "%s is a list of rights", argument.Name).WithHint("[LOCAL_WRITE, REMOTE_READ]")
		return nil
	}
	rights := d.access(node.Items, argument.Type == verb.Rights)
	return constant(rights, node.Span())
}

// fields compiles a list of fields of completions, which must be known before the run.
func (d *decoder) fields(argument *verb.Argument, node *syntax.Node, at place) *Value {
	hint := "[STANDARD, COMPLETION_TIMESTAMP]"
	if node = d.shaped(node, &at, syntax.Sequence, 0, hint, "%s is a list of fields of completions", argument.Name); node == nil {
		return nil
	}
	item := &verb.Argument{Name: argument.Name, Type: verb.Word, Words: verb.FieldNames()}
	var fields rdmacore.WCFields
	good := true
	for _, each := range node.Items {
		name, known := d.knownIn(item, each, at.scope).(string)
		field, err := verb.ParseField(name)
		good = good && known && err == nil
		fields |= field
	}
	if !good {
		return nil // the words are the parser's own
	}
	return constant(fields, node.Span())
}

// conditionArgument compiles an expression that must be true, and keeps its text.
func (d *decoder) conditionArgument(argument *verb.Argument, node *syntax.Node, at place) *Value {
	text := bareCondition(node.Value)
	value := d.truth(argument.Name, node, at)
	if value == nil {
		return nil
	}
	if known, ok := value.Constant(); ok {
		return constant(conditionValue(text, value.Hex, known, at.scope.consts), value.Span)
	}
	return &Value{Span: value.Span, compute: func(env expression.Env) (any, error) {
		v, err := value.Get(env)
		if err != nil {
			return nil, err
		}
		return conditionValue(text, value.Hex, v, env), nil
	}}
}

// bareCondition is the expression of a condition, which may stand in $(..).
func bareCondition(text string) string {
	text = strings.TrimSpace(text)
	if expression.Contains(text) {
		text = strings.TrimSuffix(strings.TrimPrefix(text, "$("), ")")
	}
	return text
}

// conditionValue is the value of a condition, with what it compares where it does not hold.
func conditionValue(text string, hex bool, value any, env expression.Env) verb.ConditionValue {
	condition := verb.ConditionValue{Holds: value == true, Text: text}
	if !condition.Holds {
		show := Show
		if hex {
			show = ShowHex
		}
		for _, operand := range expression.Operands(text, env) {
			condition.Operands = append(condition.Operands, operand.Text+" is "+show(operand.Value, verb.Text))
		}
	}
	return condition
}

// objectName compiles the name of an object of the step's role, which a step before must have made.
func (d *decoder) objectName(argument *verb.Argument, node *syntax.Node, at place) *Value {
	value := d.scalar(argument, node, at)
	if value == nil {
		return nil
	}
	kind, maker := argument.Type.Maker()
	name, made := d.isMade(kind, node, value, at)
	if !made {
		d.errors.Report(diag.UnknownObject, value.Span, "role %q has no %s %q here", at.role, withoutArticle(argument.Type.String()), name).
			WithHint("%s", hintOr(diag.DidYouMean(name, d.timeline.names(kind, at.role)), fmt.Sprintf("make it first: {role: %s, %s: {..}, as: %s}", at.role, maker, name)))
	}
	return value
}

func withoutArticle(text string) string {
	_, rest, _ := strings.Cut(text, " ")
	return rest
}

// remote compiles the peer's memory: {addr, rkey, length}, ROLE.NAME, or an expression that yields a
// record with addr and rkey.
func (d *decoder) remote(argument *verb.Argument, node *syntax.Node, at place) *Value {
	node, at.scope = at.scope.resolve(node)
	switch {
	case node.Kind == syntax.Mapping:
		return d.remoteForm(node, at)
	case node.Kind == syntax.Scalar && expression.Contains(node.Value):
		pieces, unterminated := expression.Scan(node.Value)
		if unterminated >= 0 || len(pieces) != 1 {
			break
		}
		raw, kind := d.compile(node, pieces[0], node.Locate(pieces[0].Offset, pieces[0].Offset+len(pieces[0].Text)), at)
		if raw == nil {
			return nil
		}
		if !d.types.accepts(argument.Type, kind) {
			d.errors.Report(diag.ExpressionType, raw.Span, "%s wants a record with addr and rkey, and this is %s", argument.Name, kind)
			return nil
		}
		return d.converted(raw, remoteFrom)
	case node.Kind == syntax.Scalar && strings.Contains(node.Value, "."):
		return d.remoteBuffer(argument, node, at)
	}
	d.errors.Report(diag.WrongType, node.Span(), "%s wants remote memory", argument.Name).
		WithHint("write {addr: .., rkey: ..}, ROLE.BUFFER, or an expression such as $(adv), a record")
	return nil
}

func (d *decoder) remoteForm(node *syntax.Node, at place) *Value {
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
			d.errors.Report(diag.UnknownKey, pair.Key.Span(), "remote memory has no key %q", pair.Key.Value).WithHint("there are: addr, rkey, length")
			good = false
			continue
		}
		parts[index] = d.scalar(arguments[index], pair.Value, at)
		good = good && parts[index] != nil
	}
	for i, argument := range arguments {
		if argument.Required && node.Get(argument.Name) == nil {
			d.errors.Report(diag.MissingKey, node.Span(), "remote memory needs %q", argument.Name)
			good = false
		}
		if parts[i] == nil {
			parts[i] = constant(-1, node.Span())
		}
	}
	if !good {
		return nil
	}
	return d.combined(node.Span(), parts, func(v []any) (any, error) {
		return verb.RemoteMemory{Address: v[0].(uint64), RKey: uint32(v[1].(int)), Length: v[2].(int)}, nil
	})
}

// remoteBuffer is ROLE.NAME: the runner hands the address over, as `$(ROLE.NAME)` would.
func (d *decoder) remoteBuffer(argument *verb.Argument, node *syntax.Node, at place) *Value {
	name := d.bufferName(argument, node, at)
	if name == nil {
		return nil
	}
	known, _ := name.Constant()
	buffer := known.(verb.BufferName)
	return &Value{Span: node.Span(), compute: func(env expression.Env) (any, error) {
		return remoteFrom(d.roleObject(env, buffer.Role)[buffer.Name])
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
