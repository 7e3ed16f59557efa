package compile

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
	"rdmarun/rdmacore"
)

// compileRoles makes the roles; their sizes must be known before the run.
func (x *expander) compileRoles() []testbed.RoleConfig {
	for _, written := range x.file.Roles {
		r := &role{name: written.Name.Value, executable: executableOf(written), buffers: make(map[string]bool)}
		for _, buffer := range written.Buffers {
			if slices.Contains(roleMembers, buffer.Name.Value) {
				x.errors.Report(
					diag.BadName, buffer.Name.Span(), "%q is a member of every role in expressions", buffer.Name.Value,
				).
					WithHint("choose another name")
			}
			r.buffers[buffer.Name.Value] = true
		}
		if x.global.find(r.name).kind != nil {
			x.errors.Report(diag.NameTaken, written.Name.Span(), "%q is a parameter already", r.name).
				WithHint("expressions could not distinguish them")
		}
		x.roles[r.name] = r
		x.count(r, written)
	}
	configs := make([]testbed.RoleConfig, 0, len(x.file.Roles))
	for _, written := range x.file.Roles {
		guest, functions := x.guest(written.Guest, isTrue(written.Optional))
		program := x.nativeProgram(written.Program)
		whole := x.roles[written.Name.Value]
		for _, r := range append([]*role{whole}, whole.instances...) {
			r.functions = functions
			if r.instances == nil {
				configs = append(configs, x.roleConfig(written, r, guest, program))
			}
		}
	}
	return configs
}

// roleConfig reads the part of one party; of an instance its number is known in it.
func (d *decoder) roleConfig(
	written *ast.Role, r *role, guest *testbed.GuestConfig, program *testbed.ProgramConfig,
) testbed.RoleConfig {
	config := testbed.RoleConfig{
		Name: r.name, Index: r.index, Guest: guest, Program: program, Spread: written.Spread != nil,
	}
	if r.group != nil {
		config.Group = r.group.name
		global := d.global
		defer func() { d.global = global }()
		d.global = global.inner()
		d.global.add(indexName, expression.Integer, r.index)
	}
	config.Provider = d.roleProvider(written.Provider)
	device := written.Device
	if on := written.Provider; device == nil && on != nil && on.Verbs != nil {
		device = on.Verbs.Device
	}
	setKnown(&config.Device, d.known(&verb.Argument{Name: "device", Type: verb.Text}, device, d.global))
	setKnown(
		&config.Port,
		d.known(&verb.Argument{Name: "port", Type: verb.Integer, Min: 1, Max: 255}, written.Port, d.global),
	)
	if gid := d.known(&verb.Argument{Name: "gid", Type: verb.Text}, written.GID, d.global); gid != nil {
		config.GID = d.gid(gid.(string), written.GID)
	}
	config.CPUs = d.cpus(written.CPUs)
	for _, label := range written.Labels {
		if text := d.known(&verb.Argument{Name: label.Key.Value, Type: verb.Text}, label.Value, d.global); text != nil {
			if config.Labels == nil {
				config.Labels = make(map[string]string)
			}
			config.Labels[label.Key.Value] = text.(string)
		}
	}
	for _, buffer := range written.Buffers {
		made := d.buffer(buffer)
		config.Buffers = append(config.Buffers, made)
		if written := made.Size; written > 1 { // 1 stands for a size that is wrong, or not known yet
			if r.sizes == nil {
				r.sizes = make(map[string]int)
			}
			r.sizes[made.Name] = written
		}
	}
	return config
}

// localNUMA is the word for the CPUs near the device.
const localNUMA = "local_numa"

func (d *decoder) cpus(nodes []*syntax.Node) testbed.CPUs {
	var cpus testbed.CPUs
	for _, node := range nodes {
		if node.Value == localNUMA && len(nodes) == 1 {
			return testbed.CPUs{Local: true}
		}
		if node.Value != "" && !expression.Contains(node.Value) {
			if _, err := strconv.Atoi(node.Value); err != nil {
				d.errors.Report(
					diag.WrongType, node.Span(), "cpu is a number, a list of numbers or %s, and this is %q", localNUMA,
					node.Value,
				).
					WithHint("%s", diag.DidYouMean(node.Value, []string{localNUMA}))
				continue
			}
		}
		if cpu := d.known(
			&verb.Argument{Name: "cpu", Type: verb.Integer, Max: testbed.MaxCPU}, node, d.global,
		); cpu != nil {
			cpus.List = append(cpus.List, cpu.(int))
		}
	}
	return cpus
}

// gid checks what chooses an entry of a GID table.
func (d *decoder) gid(text string, node *syntax.Node) string {
	_, notAddress := netip.ParseAddr(text)
	if _, notIndex := strconv.ParseUint(text, 10, 16); notIndex != nil && notAddress != nil {
		d.errors.Report(
			diag.WrongType, node.Span(), "gid is an index of the GID table or an IP address, and this is %q", text,
		)
	}
	return text
}

// roleParams checks the parameters that name roles.
func (x *expander) roleParams() {
	for _, param := range x.file.Params {
		name, given := x.global.find(param.Name.Value).value.(string)
		if param.Type.Value == "role" && given && x.roles[name] == nil {
			span := param.Name.Span()
			if param.Default != nil {
				span = param.Default.Span()
			}
			x.unknownRole(name, span)
		}
	}
}

// largestBuffer keeps a typing mistake from taking all memory.
const largestBuffer = 64 << 30

func (d *decoder) buffer(written *ast.Buffer) testbed.BufferConfig {
	config := testbed.BufferConfig{Name: written.Name.Value, Size: 1, Access: d.access(written.Access, true, d.global)}
	setKnown(
		&config.Size,
		d.known(&verb.Argument{Name: "size", Type: verb.Size, Min: 1, Max: largestBuffer}, written.Size, d.global),
	)
	if word := d.known(
		&verb.Argument{Name: "backing", Type: verb.Word, Words: verb.BackingNames()}, written.Backing, d.global,
	); word != nil {
		config.Backing, _ = rdmacore.ParseBacking(word.(string)) // the words are the parser's own
	}
	if written.Fill != nil {
		config.Fill = d.filling(written.Fill, config.Size)
	}
	return config
}

// filling reads what a buffer holds at first.
func (d *decoder) filling(node *syntax.Node, size int) testbed.Filling {
	value := d.data(&verb.Argument{Name: "fill", Type: verb.Data}, node, place{scope: d.global})
	data, known := d.constant("fill", value).(verb.DataValue)
	if !known {
		return testbed.Filling{}
	}
	filling := data.Filling()
	if !filling.Fits(size) {
		d.errors.Report(
			diag.OutOfRange, value.Span, "%d bytes do not fit into a buffer of %d", len(filling.Bytes), size,
		)
	}
	return filling
}

const (
	// maxInstances bounds a counted role: each instance has a protection domain, an event channel and its steps.
	maxInstances = 1000
	// hostsWithoutLab is the number of instances of a role with one for each host, when no lab has the number of
	// hosts.
	hostsWithoutLab = 2
	// someRole is the role of a step that is known only in the run.
	someRole = ""
)

// count makes the instances of a counted role.
func (x *expander) count(r *role, written *ast.Role) {
	if written.Count == nil {
		return
	}
	count := hostsWithoutLab
	switch {
	case written.Count.Value == ast.CountHosts && x.options.Hosts != nil:
		count = min(max(x.options.Hosts(r.name), 1), maxInstances)
	case written.Count.Value == ast.CountHosts:
	default:
		setKnown(
			&count,
			x.known(
				&verb.Argument{Name: "count", Type: verb.Integer, Min: 1, Max: maxInstances}, written.Count, x.global,
			),
		)
	}
	for i := range count {
		instance := &role{
			name: fmt.Sprintf("%s[%d]", r.name, i), group: r, index: i, executable: r.executable, buffers: r.buffers,
		}
		r.instances = append(r.instances, instance)
		x.roles[instance.name] = instance
	}
	x.counted = true
}

// roleNames are those of the file's roles, sorted.
func (rs *resolver) roleNames() []string {
	return slices.DeleteFunc(sortedKeys(rs.roles), func(name string) bool { return rs.roles[name].group != nil })
}

// isSingle reports a name that is not the name of one party.
func (d *decoder) isSingle(name string, span diag.Span) bool {
	bad := d.notSingle(name)
	if bad != nil {
		d.report(bad, span)
	}
	return bad == nil
}

// notSingle is the error for a name that is not of one party; nil if it is.
func (rs *resolver) notSingle(name string) *problem {
	switch r := rs.roles[name]; {
	case r == nil:
		return rs.noRole(name)
	case r.instances != nil:
		return diag.Wrong(diag.WrongRole, fmt.Sprintf(
			"role %q has %d instances, and here one of them is wanted", name, len(r.instances),
		),
			fmt.Sprintf("%s[0], or %s[$(%s)] in a step of each instance", name, name, indexName))
	}
	return nil
}

// noRole is the error for a name that no role has, and no instance of one.
func (rs *resolver) noRole(name string) *problem {
	group, _, bracket := strings.Cut(name, "[")
	switch r := rs.roles[group]; {
	case len(rs.roles) == 0:
		return diag.Wrong(
			diag.UnknownRole, "there is no role "+quoted(name),
			"the file has no roles; define them under the key \"roles\"",
		)
	case !bracket || r == nil:
		return diag.Wrong(diag.UnknownRole, "there is no role "+quoted(name), diag.OneOf(name, rs.roleNames()))
	case r.instances == nil:
		return diag.Wrong(
			diag.UnknownRole, fmt.Sprintf("role %q has no instances", group),
			"roles: {"+group+": {count: 4}} makes some",
		)
	default:
		count := len(r.instances)
		return diag.Wrong(diag.UnknownRole, fmt.Sprintf("there is no %q", name),
			fmt.Sprintf(
				"role %s has %d instances, %s to %s", group, count, r.instances[0].name, r.instances[count-1].name,
			))
	}
}

// instanceNames are the names of the instances of a counted role. For another role, or for a name that is known only
// in the run, it is its own name.
func (rs *resolver) instanceNames(value *Value) []*Value {
	name, _ := value.constant.(string)
	r := rs.roles[name]
	if r == nil || r.instances == nil {
		return []*Value{value}
	}
	var list []*Value
	for _, instance := range r.instances {
		list = append(list, constant(instance.name, value.Span))
	}
	return list
}

// roleObject is what expressions see of a role; nil when there is none.
func (rs *resolver) roleObject(env expression.Env, name string) map[string]any {
	if r := rs.roles[name]; r != nil && r.group != nil {
		if list, ok := env[r.group.name].([]any); ok && r.index < len(list) {
			object, _ := list[r.index].(map[string]any)
			return object
		}
	}
	object, _ := env[name].(map[string]any)
	return object
}
