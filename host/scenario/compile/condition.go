package compile

import (
	"slices"
	"strings"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// Requirement is a condition of the surroundings.
type Requirement struct {
	Text  string
	Span  diag.Span
	value *Value
}

// Found lists what the condition compares with the values that these have: "device.max_sge is 32".
func (r *Requirement) Found(surroundings expression.Env) []string {
	return conditionValue(bareCondition(r.Text), false, false, surroundings).Operands
}

// Mentions reports whether the condition has one of several names.
func (r *Requirement) Mentions(names ...string) bool {
	if r == nil || len(names) == 0 {
		return false
	}
	words := expression.Words(bareCondition(r.Text))
	return slices.ContainsFunc(names, func(name string) bool { return words[name] })
}

// Holds evaluates the condition with what the surroundings are, in the form of Surroundings.
func (r *Requirement) Holds(surroundings expression.Env) (bool, error) {
	value, err := r.value.Get(surroundings)
	return value == true, err
}

// XFail is when a case is known to fail, and why.
type XFail struct {
	When   *Requirement // nil: always
	Reason string
	// Raises is what is expected of the failure's fields; nil: nothing, any failure will do.
	Raises []Expectation
}

// FailureFields are what a failure is known by.
type FailureFields struct{ Action, What, Got string }

// Unlike names the part of a failure that was not expected; "" when it is the expected failure.
func (x *XFail) Unlike(f FailureFields) string {
	for i := range x.Raises {
		e := &x.Raises[i]
		got := map[string]string{"action": f.Action, "what": f.What, "got": f.Got}[e.Field]
		if ok, want, err := e.Check(nil, got); err != nil || !ok {
			return e.Field + " " + want
		}
	}
	return ""
}

// surroundingNames lists what `requires` and `xfail` may mention; guests and programs are the roles that these
// play.
func surroundingNames(guests, programs []string) expression.Names {
	available := func(names []string) expression.Object {
		object := expression.Object{}
		for _, name := range names {
			object[name] = expression.Boolean
		}
		return object
	}
	names := expression.Names{"guest": available(guests), "program": available(programs)}
	for _, each := range surroundings {
		object, member, nested := strings.Cut(each.name, ".")
		if !nested {
			names[object] = each.kind
			continue
		}
		if names[object] == nil {
			names[object] = expression.Object{}
		}
		names[object].(expression.Object)[member] = each.kind
	}
	return names
}

// fact is something that expressions may mention.
type fact struct {
	name string
	kind expression.Type
	doc  string
}

// surroundings are what `requires`, `xfail` and the `if` of a threshold may mention, in addition to guest.NAME and
// program.NAME.
var surroundings = []fact{
	{
		"provider.name", expression.String,
		"soft or verbs; like clock, transport, device and driver that of the first role",
	},
	{"provider.soft", expression.Boolean, "it runs on soft, in this process"},
	{"provider.verbs", expression.Boolean, "it runs on an RDMA device"},
	{"clock.virtual", expression.Boolean, "time passes only when all wait"},
	{"transport.ib", expression.Boolean, "InfiniBand's transport, also over Ethernet; not iWARP"},
	{"transport.roce", expression.Boolean, "InfiniBand's transport over Ethernet"},
	{"transport.iwarp", expression.Boolean, "RDMA over TCP"},
	{"device.name", expression.String, "name of the device"},
	{"device.atomic", expression.Boolean, "it can do atomic operations"},
	{"device.srq", expression.Boolean, "it has shared receive queues"},
	{"device.mw", expression.Boolean, "it has memory windows"},
	{"device.timestamps", expression.Boolean, "its completions can have time stamps"},
	{"device.flush", expression.Boolean, "it has FLUSH, which makes data visible to all (placement GLOBAL)"},
	{"device.flush_persistent", expression.Boolean, "its FLUSH can make data outlive the power (placement PERSISTENT)"},
	{"device.atomic_write", expression.Boolean, "it has ATOMIC_WRITE"},
	{"device.max_qp_rd_atom", expression.Integer, "READs and atomics at once that a queue pair answers"},
	{"device.max_qp_wr", expression.Integer, "requests that a queue holds"},
	{"device.max_sge", expression.Integer, "buffers of a request"},
	{"driver", expression.String, "driver of the device: soft, rxe, siw, mlx5.."},
	{"fault.link", expression.Boolean, "messages between roles can be lost"},
	{"fault.cm", expression.Boolean, "messages of the connection manager can be lost"},
	{"fault.data", expression.Boolean, "packets of queue pairs can be lost"},
	{
		"fault.packet", expression.Boolean,
		"packets can be delayed, duplicated, reordered and corrupted: soft's link `packets`",
	},
	{"fault.device", expression.Boolean, "the device can be taken away"},
	{"roles.distinct_hosts", expression.Boolean, "the roles are on several hosts"},
	{"roles.distinct_devices", expression.Boolean, "each role has a device of its own"},
	{"roles.distinct_addresses", expression.Boolean, "each role has an address of its own"},
}

// requirements compiles the items of `requires`; all must hold.
func (d *decoder) requirements(nodes []*syntax.Node, known *scope) []*Requirement {
	var list []*Requirement
	for _, node := range nodes {
		if r := d.requirement(node, known, nil); r != nil {
			list = append(list, r)
		}
	}
	return list
}

// requirement compiles a condition of the surroundings; more are names with values that only the run has.
func (d *decoder) requirement(node *syntax.Node, known *scope, more expression.Names) *Requirement {
	var guests, programs []string
	roles := expression.Names{}
	for _, written := range d.file.Roles {
		role := expression.Type(surroundingsOfRole())
		if written.Count != nil {
			role = expression.List(role)
		}
		switch roles[written.Name.Value] = role; executableOf(written) {
		case aGuest:
			guests = append(guests, written.Name.Value)
		case aProgram:
			programs = append(programs, written.Name.Value)
		}
	}
	s := &scope{names: make(map[string]name), mentioned: known.mentioned, alone: true}
	for word := range known.words() {
		if found := known.find(word); found.value != nil {
			s.names[word] = found
		}
	}
	for _, names := range []expression.Names{roles, surroundingNames(guests, programs), more} {
		for word, kind := range names { // as in the run: a matrix may have the name provider
			s.names[word] = name{kind: kind, declared: known.find(word).declared}
		}
	}
	value := d.truth("a condition", node, place{scope: s})
	if value == nil {
		return nil
	}
	return &Requirement{Text: node.Value, Span: node.Span(), value: value}
}

func (d *decoder) xfail(written *ast.XFail, s *scope) *XFail {
	if written == nil {
		return nil
	}
	x := &XFail{}
	setKnown(&x.Reason, d.known(&verb.Argument{Name: "reason", Type: verb.Text, Message: true}, written.Reason, s))
	if written.When != nil {
		x.When = d.requirement(written.When, s, nil)
	}
	if written.Raises != nil {
		x.Raises = d.raises(written.Raises, s)
	}
	return x
}

// raises compiles what a failure must be, which is known before the run: what comes of a run does not excuse it.
func (d *decoder) raises(node *syntax.Node, s *scope) []Expectation {
	s = s.withoutSteps()
	var list []Expectation
	for _, pair := range node.Pairs {
		e := Expectation{Field: pair.Key.Value, Span: pair.Key.Span(), Type: verb.Text}
		var good bool
		e.Conditions, good = d.conditions(&verb.Argument{Name: e.Field, Type: verb.Text}, pair.Value, place{scope: s})
		for _, condition := range e.Conditions {
			for _, operand := range condition.Operands {
				good = d.constant("what xfail expects", operand) != nil && good
			}
		}
		if good {
			list = append(list, e)
		}
	}
	return list
}
