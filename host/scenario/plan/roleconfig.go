package plan

import (
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/lab"
	"rdmarun/host/scenario/shape"
	"rdmarun/host/scenario/verb"
)

// compileRoles makes the roles; their sizes must be known before the run.
func (c *compiler) compileRoles() []lab.RoleConfig {
	for _, written := range c.file.Roles {
		r := &role{name: written.Name.Value, guest: written.Guest != nil, buffers: make(map[string]bool)}
		for _, buffer := range written.Buffers {
			r.buffers[buffer.Name.Value] = true
		}
		if _, taken := c.global.names[r.name]; taken {
			c.errors.Report(diag.NameTaken, written.Name.Span(), "%q is a parameter already", r.name).
				WithHint("expressions could not tell one from the other")
		}
		c.roles[r.name] = r
		c.count(r, written)
	}
	configs := make([]lab.RoleConfig, 0, len(c.file.Roles))
	for _, written := range c.file.Roles {
		config := lab.RoleConfig{Name: written.Name.Value, Guest: c.guest(written.Guest, written.Optional)}
		c.eachOf(config.Name, func(r *role) { r.functions = c.functions })
		if device := c.knownScalar(&verb.Argument{Name: "device", Type: verb.Text}, written.Device); device != nil {
			config.Device = device.(string)
		}
		for _, buffer := range written.Buffers {
			config.Buffers = append(config.Buffers, c.buffer(buffer))
		}
		configs = append(configs, c.roles[config.Name].configs(config)...)
	}
	return configs
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

func (c *compiler) buffer(written *shape.Buffer) lab.BufferConfig {
	config := lab.BufferConfig{Name: written.Name.Value, Size: 1, Access: c.access(written.Access)}
	if size := c.knownScalar(&verb.Argument{Name: "size", Type: verb.Size, Min: 1, Max: largestBuffer}, written.Size); size != nil {
		config.Size = size.(int)
	}
	return config
}
