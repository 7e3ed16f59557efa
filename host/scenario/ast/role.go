package ast

import (
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
)

func (r *reader) roles(node *syntax.Node) (roles []*Role) {
	r.named(node, "roles", func(name, value *syntax.Node) {
		role := &Role{Name: name}
		if value.IsNull() || r.role(role, value) {
			roles = append(roles, role)
		}
	})
	return roles
}

func (r *reader) role(role *Role, node *syntax.Node) bool {
	if !r.read(node, roleSection, role) {
		return false
	}
	if optional := role.Optional; optional != nil && optional.Value != "true" && optional.Value != "false" {
		r.errors.Report(diag.WrongType, optional.Span(), "optional is true or false")
	}
	r.where(role, node)
	r.provided(role, node.Get("provider"))
	switch buffers := node.Get("buffers"); {
	case buffers == nil:
	case role.Guest != nil:
		r.errors.Report(diag.Conflict, node.Key("buffers").Span(), "a guest has its own memory, so its role has no buffers")
	default:
		role.Buffers = r.buffers(buffers)
	}
	return true
}

// provided checks what only the provider of a role is: one, without what all roles of a case share.
func (r *reader) provided(role *Role, node *syntax.Node) {
	p := role.Provider
	if p == nil || p.Name != nil {
		return
	}
	switch {
	case len(node.Pairs) == 0:
		r.errors.Report(diag.MissingKey, node.Span(), "provider says nothing").WithHint("%s", diag.ThereAre(Names(providerKeys)))
	case len(node.Pairs) > 1:
		r.errors.Report(diag.Conflict, node.Pairs[1].Key.Span(), "a role has one provider, and this is a second one")
	case hasKey(providerKeys, node.Pairs[0].Key.Value):
		p.Name = node.Pairs[0].Key
	}
	if p.Soft != nil && p.Soft.Clock != nil {
		r.errors.Report(diag.Misplaced, node.Get("soft").Key("clock").Span(), "the clock is that of all roles").
			WithHint("it stands in the provider of the file; roles of several providers have the wall clock")
	}
	if p.Verbs != nil && p.Verbs.Device != nil && role.Device != nil {
		r.errors.Report(diag.Conflict, role.Device.Span(), "the role has a device already, in its provider")
	}
}

// where reads what says where a role runs.
func (r *reader) where(role *Role, node *syntax.Node) {
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

func (r *reader) buffers(node *syntax.Node) (buffers []*Buffer) {
	r.named(node, "buffers", func(name, value *syntax.Node) {
		buffer := &Buffer{Name: name}
		if r.read(value, bufferSection, buffer) {
			buffers = append(buffers, buffer)
		}
	})
	return buffers
}

func (r *reader) guest(node *syntax.Node) *Guest {
	guest := &Guest{}
	if !r.mapping(node, "guest") || !r.read(node, guestSection, guest) {
		return nil
	}
	return guest
}
