package ast

import (
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
)

func (r *reader) roles(node *syntax.Node) []*Role {
	if node == nil || !r.mapping(node, "roles") {
		return nil
	}
	var roles []*Role
	for _, pair := range node.Pairs {
		if !r.name(pair.Key) {
			continue
		}
		if pair.Value.IsNull() {
			roles = append(roles, &Role{Name: pair.Key})
			continue
		}
		if !r.mapping(pair.Value, "a role") {
			continue
		}
		roles = append(roles, r.role(pair.Key, pair.Value))
	}
	return roles
}

func (r *reader) role(name, node *syntax.Node) *Role {
	r.keys(node, roleKeys)
	optional := r.text(node.Get("optional"))
	if optional != nil && optional.Value != "true" && optional.Value != "false" {
		r.errors.Report(diag.WrongType, optional.Span(), "optional is true or false")
	}
	role := &Role{
		Name: name, Count: r.text(node.Get("count")), Device: r.text(node.Get("device")),
		Guest: r.guest(node.Get("guest")), Optional: optional != nil && optional.Value == "true",
	}
	r.where(role, node)
	if role.Guest != nil {
		if buffers := node.Key("buffers"); buffers != nil {
			r.errors.Report(diag.Conflict, buffers.Span(), "a guest has its own memory, so its role has no buffers")
		}
		return role
	}
	if buffers := node.Get("buffers"); buffers != nil && r.mapping(buffers, "buffers") {
		role.Buffers = r.buffers(buffers)
	}
	return role
}

// where reads what says where a role runs.
func (r *reader) where(role *Role, node *syntax.Node) {
	role.Port = r.text(node.Get("port"))
	if path := node.Get("path"); path != nil && r.mapping(path, "path") {
		r.keys(path, pathKeys)
		role.GID = r.text(r.required(path, "gid", "path"))
	}
	if cpu := node.Get("cpu"); cpu != nil && cpu.Kind == syntax.Scalar {
		role.CPUs = []*syntax.Node{cpu}
	} else {
		role.CPUs = r.words(cpu, "cpu")
	}
	place := node.Get("place")
	switch {
	case place == nil:
	case place.Kind != syntax.Mapping:
		r.errors.Report(diag.WrongShape, place.Span(), "a role cannot be sent to a place: one rdmarun drives all roles").
			WithHint("device, port and path choose where it is on this host; place: {spread: host} skips the case where there is one host")
	default:
		r.keys(place, placeKeys)
		role.Spread = r.text(r.required(place, "spread", "place"))
		if role.Spread != nil && role.Spread.Value != "host" {
			r.errors.Report(diag.NotOneOf, role.Spread.Span(), "spread can only be: host")
		}
	}
}

func (r *reader) buffers(node *syntax.Node) []*Buffer {
	var buffers []*Buffer
	for _, pair := range node.Pairs {
		if !r.name(pair.Key) || !r.mapping(pair.Value, "a buffer") {
			continue
		}
		r.keys(pair.Value, bufferKeys)
		buffers = append(buffers, &Buffer{
			Name:   pair.Key,
			Size:   r.text(r.required(pair.Value, "size", "a buffer")),
			Access: r.rights(pair.Value.Get("access")),

			Backing: r.text(pair.Value.Get("backing")), Fill: pair.Value.Get("fill"),
		})
	}
	return buffers
}

// rights returns a list of rights; an empty one is no right at all.
func (r *reader) rights(node *syntax.Node) []*syntax.Node {
	if node != nil && node.Kind == syntax.Sequence && len(node.Items) == 0 {
		return nil
	}
	return r.words(node, "access")
}

func (r *reader) guest(node *syntax.Node) *Guest {
	if node == nil || !r.mapping(node, "guest") {
		return nil
	}
	r.keys(node, guestKeys)
	guest := &Guest{
		Node:   node,
		Module: r.text(r.required(node, "module", "a guest")),
		Args:   r.words(node.Get("args"), "args"),
	}
	if limits := node.Get("limits"); limits != nil && r.mapping(limits, "limits") {
		r.keys(limits, limitKeys)
		for name, to := range map[string]**syntax.Node{"time": &guest.Time, "memory": &guest.Memory,
			"registered": &guest.Registered, "handles": &guest.Handles, "files": &guest.Files, "output": &guest.Output} {
			*to = r.text(limits.Get(name))
		}
	}
	return guest
}
