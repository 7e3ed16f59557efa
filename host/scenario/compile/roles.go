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
func (c *compiler) compileRoles() []testbed.RoleConfig {
	for _, written := range c.file.Roles {
		r := &role{name: written.Name.Value, guest: written.Guest != nil, buffers: make(map[string]bool)}
		for _, buffer := range written.Buffers {
			if slices.Contains(roleMembers, buffer.Name.Value) {
				c.errors.Report(diag.BadName, buffer.Name.Span(), "%q is a member of every role in expressions", buffer.Name.Value).
					WithHint("choose another name")
			}
			r.buffers[buffer.Name.Value] = true
		}
		if _, taken := c.global.names[r.name]; taken {
			c.errors.Report(diag.NameTaken, written.Name.Span(), "%q is a parameter already", r.name).
				WithHint("expressions could not tell one from the other")
		}
		c.roles[r.name] = r
		c.count(r, written)
	}
	configs := make([]testbed.RoleConfig, 0, len(c.file.Roles))
	for _, written := range c.file.Roles {
		guest := c.guest(written.Guest, written.Optional)
		c.eachOf(written.Name.Value, func(r *role) {
			r.functions = c.functions
			if r.count == 0 {
				configs = append(configs, c.roleConfig(written, r, guest))
			}
		})
	}
	return configs
}

// roleConfig reads the part of one party; of an instance its number is known in it.
func (c *compiler) roleConfig(written *ast.Role, r *role, guest *testbed.GuestConfig) testbed.RoleConfig {
	config := testbed.RoleConfig{Name: r.name, Group: r.group, Index: r.index, Guest: guest, Spread: written.Spread != nil}
	if r.group != "" {
		global := c.global
		defer func() { c.global = global }()
		c.global = global.inner()
		c.global.add(indexName, expression.Integer, r.index)
	}
	if device := c.knownScalar(&verb.Argument{Name: "device", Type: verb.Text}, written.Device); device != nil {
		config.Device = device.(string)
	}
	if port := c.knownScalar(&verb.Argument{Name: "port", Type: verb.Integer, Min: 1, Max: 255}, written.Port); port != nil {
		config.Port = port.(int)
	}
	if gid := c.knownScalar(&verb.Argument{Name: "gid", Type: verb.Text}, written.GID); gid != nil {
		config.GID = c.gid(gid.(string), written.GID)
	}
	config.CPUs = c.cpus(written.CPUs)
	for _, buffer := range written.Buffers {
		made := c.buffer(buffer)
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

func (c *compiler) cpus(nodes []*syntax.Node) testbed.CPUs {
	var cpus testbed.CPUs
	for _, node := range nodes {
		if node.Value == localNUMA && len(nodes) == 1 {
			return testbed.CPUs{Local: true}
		}
		if node.Value != "" && !expression.Contains(node.Value) {
			if _, err := strconv.Atoi(node.Value); err != nil {
				c.errors.Report(diag.WrongType, node.Span(), "cpu is a number, a list of numbers or %s, and this is %q", localNUMA, node.Value).
					WithHint("%s", diag.DidYouMean(node.Value, []string{localNUMA}))
				continue
			}
		}
		if cpu := c.knownScalar(&verb.Argument{Name: "cpu", Type: verb.Integer, Max: testbed.MaxCPU}, node); cpu != nil {
			cpus.List = append(cpus.List, cpu.(int))
		}
	}
	return cpus
}

// gid checks what chooses an entry of a GID table.
func (c *compiler) gid(text string, node *syntax.Node) string {
	_, notAddress := netip.ParseAddr(text)
	if _, notIndex := strconv.ParseUint(text, 10, 16); notIndex != nil && notAddress != nil {
		c.errors.Report(diag.WrongType, node.Span(), "gid is an index of the GID table or an IP address, and this is %q", text)
	}
	return text
}

// roleParams checks the parameters that name roles.
func (c *compiler) roleParams() {
	for _, param := range c.file.Params {
		name, given := c.global.consts[param.Name.Value].(string)
		if param.Type == "role" && given && c.role(name) == nil {
			span := param.Name.Span()
			if param.Default != nil {
				span = param.Default.Span()
			}
			c.unknownRole(name, span)
		}
	}
}

// largestBuffer keeps a typing mistake from taking all memory.
const largestBuffer = 64 << 30

func (c *compiler) buffer(written *ast.Buffer) testbed.BufferConfig {
	config := testbed.BufferConfig{Name: written.Name.Value, Size: 1, Access: c.access(written.Access, true)}
	if size := c.knownScalar(&verb.Argument{Name: "size", Type: verb.Size, Min: 1, Max: largestBuffer}, written.Size); size != nil {
		config.Size = size.(int)
	}
	if word := c.knownScalar(&verb.Argument{Name: "backing", Type: verb.Word, Words: verb.BackingNames()}, written.Backing); word != nil {
		config.Backing, _ = rdmacore.ParseBacking(word.(string)) // the words are the parser's own
	}
	if written.Fill != nil {
		config.Fill = c.filling(written.Fill, config.Size)
	}
	return config
}

// filling reads what a buffer holds at first.
func (c *compiler) filling(node *syntax.Node, size int) testbed.Filling {
	value := c.data("fill", node, place{scope: c.global})
	if value == nil {
		return testbed.Filling{}
	}
	data, known := value.Constant()
	switch {
	case !known && len(c.missing) == 0:
		c.errors.Report(diag.NotConstant, value.Span, "fill must be known before the run, and this is known only while running").
			WithHint("the verb fill writes what steps find")
		fallthrough
	case !known:
		return testbed.Filling{}
	}
	filling := data.(verb.DataValue).Filling()
	if !filling.Fits(size) {
		c.errors.Report(diag.OutOfRange, value.Span, "%d bytes do not fit into a buffer of %d", len(filling.Bytes), size)
	}
	return filling
}

const (
	// maxInstances bounds a counted role: each instance has a protection domain, an event channel and its steps.
	maxInstances = 1000
	// someRole stands for the role of a step that only the run will tell.
	someRole = ""
)

func instanceName(group string, index int) string { return fmt.Sprintf("%s[%d]", group, index) }

// count makes the instances of a counted role.
func (c *compiler) count(r *role, written *ast.Role) {
	if written.Count == nil {
		return
	}
	r.count = 1
	if n := c.knownScalar(&verb.Argument{Name: "count", Type: verb.Integer, Min: 1, Max: maxInstances}, written.Count); n != nil {
		r.count = n.(int)
	}
	for i := range r.count {
		instance := &role{name: instanceName(r.name, i), group: r.name, index: i, guest: r.guest, buffers: r.buffers}
		c.instances[instance.name] = instance
	}
}

// eachOf calls f for a role of the file, and for its instances.
func (c *compiler) eachOf(name string, f func(*role)) {
	f(c.roles[name])
	for i := range c.roles[name].count {
		f(c.instances[instanceName(name, i)])
	}
}

// role finds a role of the file or an instance; nil when there is none.
func (c *compiler) role(name string) *role {
	if r := c.roles[name]; r != nil {
		return r
	}
	return c.instances[name]
}

// isParty reports a name that is not that of one party.
func (c *compiler) isParty(name string, span diag.Span) bool {
	if r := c.role(name); r == nil {
		c.unknownRole(name, span)
		return false
	}
	bad := c.notParty(name)
	if bad != nil {
		c.report(bad, span)
	}
	return bad == nil
}

// notParty says why a name is not that of one party; nil when it is.
func (c *compiler) notParty(name string) *problem {
	r := c.role(name)
	switch {
	case r != nil && r.count > 0:
		return &problem{diag.WrongRole, fmt.Sprintf("role %q has %d instances, and here one of them is wanted", name, r.count),
			fmt.Sprintf("%s[0], or %s[$(%s)] in a step of each instance", name, name, indexName)}
	case r != nil:
		return nil
	}
	if bad := c.noInstance(name); bad != nil {
		return bad
	}
	return &problem{diag.UnknownRole, "there is no role " + quoted(name), diag.DidYouMean(name, sortedKeys(c.roles))}
}

// noInstance says what is wrong with the name of an instance of a role that exists; nil for any other name.
func (c *compiler) noInstance(name string) *problem {
	group, _, bracket := strings.Cut(name, "[")
	r := c.roles[group]
	switch {
	case !bracket || r == nil:
		return nil
	case r.count == 0:
		return &problem{diag.UnknownRole, fmt.Sprintf("role %q has no instances", group), "roles: {" + group + ": {count: 4}} makes some"}
	}
	return &problem{diag.UnknownRole, fmt.Sprintf("there is no %q", name),
		fmt.Sprintf("role %s has %d instances, %s to %s", group, r.count, instanceName(group, 0), instanceName(group, r.count-1))}
}

// parties are the names of the instances of a counted role; of one party, or of what only the run will tell, its
// own.
func (c *compiler) parties(value *Value) []*Value {
	name, known := value.Constant()
	if !known || c.roles[name.(string)] == nil || c.roles[name.(string)].count == 0 {
		return []*Value{value}
	}
	var list []*Value
	for i := range c.roles[name.(string)].count {
		list = append(list, constant(instanceName(name.(string), i), value.Span))
	}
	return list
}

// roleObject is what expressions see of a role; nil when there is none.
func (c *compiler) roleObject(env expression.Env, name string) map[string]any {
	if r := c.instances[name]; r != nil {
		if list, ok := env[r.group].([]any); ok && r.index < len(list) {
			object, _ := list[r.index].(map[string]any)
			return object
		}
	}
	object, _ := env[name].(map[string]any)
	return object
}
