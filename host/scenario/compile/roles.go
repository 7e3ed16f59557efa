package compile

import (
	"path/filepath"
	"strings"
	"time"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
	"rdmarun/rdmacore"
)

// access reads rights, and checks that those of memory go together.
func (c *compiler) access(nodes []*syntax.Node, memory bool) rdmacore.Access {
	argument := &verb.Argument{Name: "access", Type: verb.Word, Words: verb.AccessNames()}
	var rights rdmacore.Access
	for _, node := range nodes {
		known := c.knownScalar(argument, node)
		name, ok := known.(string)
		if !ok {
			continue
		}
		right, err := rdmacore.ParseAccess(name)
		if err != nil {
			continue // the words are the parser's own
		}
		rights |= right
	}
	if memory && rights&(rdmacore.AccessRemoteWrite|rdmacore.AccessRemoteAtomic) != 0 && rights&rdmacore.AccessLocalWrite == 0 {
		c.errors.Report(diag.Conflict, nodes[0].Span(), "%s needs LOCAL_WRITE too", rights&^rdmacore.AccessRemoteRead).
			WithHint("ibv_reg_mr(3): who may not write itself cannot let others")
	}
	return rights
}

// guest reads the part of a role that a program plays.
func (c *compiler) guest(written *ast.Guest, optional bool) *testbed.GuestConfig {
	c.functions = nil
	if written == nil {
		return nil
	}
	config := &testbed.GuestConfig{}
	if limit := c.knownScalar(&verb.Argument{Name: "time", Type: verb.Duration, Min: 1, Max: int64(24 * time.Hour)}, written.Time); limit != nil {
		config.Limits.Time = limit.(time.Duration)
	}
	for _, limit := range []struct {
		argument verb.Argument
		written  *syntax.Node
		to       *int64
	}{
		{verb.Argument{Name: "memory", Type: verb.Size, Min: 64 << 10, Max: 1 << 40}, written.Memory, &config.Limits.Memory},
		{verb.Argument{Name: "registered", Type: verb.Size, Min: 1, Max: 1 << 50}, written.Registered, &config.Limits.Registered},
		{verb.Argument{Name: "handles", Type: verb.Integer, Min: 1, Max: 1 << 20}, written.Handles, &config.Limits.Handles},
		{verb.Argument{Name: "files", Type: verb.Integer, Min: 1, Max: 1 << 20}, written.Files, &config.Limits.Files},
		{verb.Argument{Name: "output", Type: verb.Size, Min: 1, Max: 1 << 50}, written.Output, &config.Limits.Output},
	} {
		if value := c.knownScalar(&limit.argument, limit.written); value != nil {
			*limit.to = int64(value.(int))
		}
	}
	module := c.knownScalar(&verb.Argument{Name: "module", Type: verb.Text}, written.Module)
	if module == nil {
		return config
	}
	config.Module = module.(string)
	if !filepath.IsAbs(config.Module) {
		config.Module = c.options.locate(filepath.Join(filepath.Dir(c.file.Root.Source.Name), config.Module))
	}
	if c.options.InspectModule != nil {
		functions, err := c.options.InspectModule(config.Module)
		if c.functions = functions; err != nil && optional {
			config.Missing = oneLine(err.Error())
		} else if err != nil {
			d := c.errors.Report(diag.GuestModule, written.Module.Span(), "%s", oneLine(err.Error()))
			if strings.Contains(filepath.ToSlash(config.Module), "bin/guests/") {
				d.WithHint("`make guests` builds the guests that come with rdmarun")
			}
		}
	}
	return config
}

// oneLine joins the lines of an error.
func oneLine(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, " ")
}

// roleArguments are the arguments of the guest of a role, compiled where a step starts it.
func (c *compiler) roleArguments(step *ast.Step, at place) []*Value {
	name, s := at.role, c.global
	if r := c.instances[at.role]; r != nil {
		name, s = r.group, s.inner()
		s.add(indexName, expression.Integer, r.index)
	} else if group := c.groupOf(step.Role); group != nil {
		name, s = group.name, s.inner()
		s.add(indexName, expression.Integer, nil)
	}
	for _, written := range c.file.Roles {
		if written.Name.Value == name && written.Guest != nil {
			return c.guestArguments(written.Guest.Args, place{scope: s, role: at.role, anyRole: at.anyRole})
		}
	}
	return nil
}

func (c *compiler) guestArguments(nodes []*syntax.Node, at place) []*Value {
	values := make([]*Value, 0, len(nodes))
	for _, node := range nodes {
		if value := c.scalar(&verb.Argument{Name: "args", Type: verb.Text}, node, at); value != nil {
			values = append(values, value)
		}
	}
	return values
}
