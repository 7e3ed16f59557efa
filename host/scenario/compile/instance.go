package compile

import (
	"fmt"
	"strings"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/verb"
)

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
