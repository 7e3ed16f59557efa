package compile

import (
	"cmp"
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
		if bad := rs.notSingle(owner); bad != nil {
			return nil, bad
		}
	}
	if r := rs.roles[roleName]; r != nil && !r.buffers[name.Name] {
		hint := cmp.Or(diag.DidYouMean(name.Name, sortedKeys(r.buffers)), rs.holders(name.Name))
		if hint == "" && r.executable == steps && !strings.Contains(name.Name, ".") {
			hint = "add it to the role: buffers: {" + name.Name + ": {size: 64}}"
		}
		return nil, diag.Wrong(diag.UnknownBuffer, "role "+quoted(r.name)+" has no buffer "+quoted(name.Name), hint)
	}
	return name, nil
}

func (rs *resolver) holders(buffer string) string {
	for _, name := range rs.roleNames() {
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

// objectName compiles the name of something that a step before must have made.
func (d *decoder) objectName(argument *verb.Argument, node *syntax.Node, at place) *Value {
	value := d.scalar(argument, node, at)
	if value == nil {
		return nil
	}
	object := verb.ObjectOf(argument.Type)
	name, made := d.isMade(object, node, value, at)
	if made {
		return value
	}
	none, step := fmt.Sprintf("role %q has no %s", at.role, object.What), fmt.Sprintf("role: %s, ", at.role)
	if object.OfCase {
		none, step = "there is no "+object.What, ""
	}
	names := d.timeline.names(object, at.role)
	hint := cmp.Or(d.makes(object, at.role, name), diag.DidYouMean(name, names))
	switch {
	case hint != "":
	case len(names) > 0:
		hint = diag.ThereAre(names)
	default:
		hint = fmt.Sprintf("make it first: {%s%s: {..}, as: %s}", step, object.Maker, name)
	}
	d.errors.Report(object.Unknown, value.Span, "%s %q here", none, name).WithHint("%s", hint)
	return value
}

// peer compiles a role, an IP address or a host name.
func (d *decoder) peer(argument *verb.Argument, node *syntax.Node, at place) *Value {
	value := d.scalar(argument, node, at)
	if value == nil || expression.Contains(node.Value) {
		return value
	}
	name := node.Value
	if r := d.roles[name]; r != nil && r.instances != nil {
		return d.report(d.notSingle(name), node.Span())
	}
	if _, err := netip.ParseAddr(name); err == nil || d.roles[name] != nil || strings.Contains(name, ".") ||
		name == "localhost" {
		return value
	}
	return d.refuse(diag.UnknownRole, node.Span(), cmp.Or(
		diag.DidYouMean(name, d.roleNames()), "a host name has a dot in it here; give others by a parameter",
	),
		"there is no role %q", name)
}

// queuePair compiles attributes of a queue pair over others.
func (d *decoder) queuePair(_ *verb.Argument, node *syntax.Node, at place) *Value {
	node, at.scope = at.scope.resolve(node)
	if node.Kind != syntax.Mapping && d.abstract {
		return nil // a parameter, which gets its value where the fragment is used
	}
	if node.Kind != syntax.Mapping {
		return d.refuse(diag.WrongShape, node.Span(), "", "qp is a mapping: {max_send_wr: 16}")
	}
	names, parts := d.keyed(verb.QueuePairArguments(), node, at, "a queue pair has no attribute")
	return d.combined(node.Span(), append(parts, d.defaultQueuePair), func(values []any) (any, error) {
		return values[len(names)].(verb.QueuePairAttributes).With(byName(names, values))
	})
}

// roleName compiles the name of a role.
func (d *decoder) roleName(argument *verb.Argument, node *syntax.Node, at place) *Value {
	value := d.scalar(argument, node, at)
	if value == nil {
		return nil
	}
	if name, known := value.Constant(); known && !d.abstract && !d.isSingle(name.(string), value.Span) {
		return nil
	}
	return value
}

// roleList compiles a list of two roles.
func (d *decoder) roleList(argument *verb.Argument, node *syntax.Node, at place) *Value {
	node, at.scope = at.scope.resolve(node)
	if node.Kind != syntax.Sequence || len(node.Items) != 2 {
		return d.refuse(diag.WrongShape, node.Span(), "[client, server]", "%s wants a list of two roles", argument.Name)
	}
	role := &verb.Argument{Name: argument.Name, Type: verb.Role}
	return d.list(node, func(item *syntax.Node) *Value { return d.roleName(role, item, at) },
		func(values []any) (any, error) {
			if values[0] == values[1] {
				return nil, diag.Wrong(
					diag.Conflict, "a link has two ends, and this is "+quoted(values[0].(string))+" twice", "",
				)
			}
			return []string{values[0].(string), values[1].(string)}, nil
		})
}

// rights compiles a list of access rights; an empty one is no right at all.
func (d *decoder) rights(argument *verb.Argument, node *syntax.Node, at place) *Value {
	if node.Kind != syntax.Sequence {
		return d.refuse(
			diag.WrongShape, node.Span(), "[LOCAL_WRITE, REMOTE_READ]", "%s is a list of rights", argument.Name,
		)
	}
	return constant(d.access(node.Items, argument.Type == verb.Rights, at.scope), node.Span())
}

// fields compiles a list of fields of completions, which must be known before the run.
func (d *decoder) fields(argument *verb.Argument, node *syntax.Node, at place) *Value {
	hint := "[STANDARD, COMPLETION_TIMESTAMP]"
	if node = d.shaped(
		node, &at, syntax.Sequence, 0, hint, "%s is a list of fields of completions", argument.Name,
	); node == nil {
		return nil
	}
	item := &verb.Argument{Name: argument.Name, Type: verb.Word, Words: verb.FieldNames()}
	var fields rdmacore.WCFields
	good := true
	for _, each := range node.Items {
		name, known := d.known(item, each, at.scope).(string)
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
		_, env := d.visible(at, expression.Words(text))
		return constant(conditionValue(text, value.Hex, known, env), value.Span)
	}
	return &Value{Span: value.Span, compute: func(env expression.Env) (any, error) {
		v, err := value.Get(env)
		if err != nil {
			return nil, err
		}
		return conditionValue(text, value.Hex, v, env), nil
	}}
}

// bareCondition is the expression of a condition, which may be in $(..).
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

// remote compiles the peer's memory: {addr, rkey, length}, ROLE.NAME, or an expression that yields a
// record with addr and rkey.
func (d *decoder) remote(argument *verb.Argument, node *syntax.Node, at place) *Value {
	node, at.scope = at.scope.resolve(node)
	switch {
	case node.Kind == syntax.Mapping:
		return d.remoteForm(node, at)
	case expression.Contains(node.Value):
		if piece, one := onlyExpression(node); one {
			return d.expression(argument, node, piece, at)
		}
	case node.Kind == syntax.Scalar && strings.Contains(node.Value, "."):
		return d.remoteBuffer(argument, node, at)
	}
	return d.refuse(
		diag.WrongType, node.Span(),
		"write {addr: .., rkey: ..}, ROLE.BUFFER, or an expression such as $(adv), a record", "%s wants remote memory",
		argument.Name,
	)
}

// remoteArguments are the keys of remote memory.
var remoteArguments = []verb.Argument{
	{Name: "addr", Type: verb.Unsigned, Required: true},
	{Name: "rkey", Type: verb.Integer, Required: true, Max: 1<<32 - 1},
	{Name: "length", Type: verb.Size},
}

func (d *decoder) remoteForm(node *syntax.Node, at place) *Value {
	names, parts := d.keyed(remoteArguments, node, at, "remote memory has no key")
	good := len(parts) == len(node.Pairs)
	for _, argument := range remoteArguments {
		if argument.Required && node.Get(argument.Name) == nil &&
			!diag.Misspelled(argument.Name, node.Keys(), namesOf(remoteArguments, argumentName)) {
			d.errors.Report(diag.MissingKey, node.Span(), "remote memory needs %q", argument.Name)
			good = false
		}
	}
	if !good {
		return nil
	}
	return d.combined(node.Span(), parts, func(values []any) (any, error) {
		given := byName(names, values)
		memory := verb.RemoteMemory{Address: given["addr"].(uint64), RKey: uint32(given["rkey"].(int)), Length: -1}
		setKnown(&memory.Length, given["length"])
		return memory, nil
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
		return orError(remoteFrom(argument, d.roleObject(env, buffer.Role)[buffer.Name]))
	}}
}

// remoteFrom reads addr, rkey and, where there is one, the length out of a record.
func remoteFrom(_ *verb.Argument, value any) (any, *problem) {
	switch v := value.(type) {
	case map[string]any:
		address, hasAddress := whole(v["addr"])
		rkey, hasKey := v["rkey"].(int)
		if !hasAddress || !hasKey {
			break
		}
		memory := verb.RemoteMemory{Address: expression.Bits(address), RKey: uint32(rkey), Length: -1}
		for _, name := range []string{"length", "size"} {
			length, _ := whole(v[name])
			setKnown(&memory.Length, length)
		}
		return memory, nil
	case nil:
		return nil, wrongType("remote memory", "nothing", "the step that sets it has not run")
	}
	return nil, wrongType(
		"remote memory", expression.Word(value),
		"a record needs addr and rkey: decode with fields [{u64: addr}, {u32: rkey}]",
	)
}
