package testbed

import (
	"slices"

	"rdmarun/rdmacore"
)

// ProviderConfig is how the provider of a role is opened; what is zero is left to the file, then to the run.  Roles of
// the same config share one provider.
type ProviderConfig struct {
	Name string // rdmacore.Soft or rdmacore.Verbs
	Link string // of soft, one of rdmacore.Links
	// Seed is that of soft's random numbers, if Seeded.
	Seed   uint64
	Seeded bool
	Legal  rdmacore.Legal // choices of soft
}

// LocalOnly reports whether nothing of another provider can be reached from this one: soft's links within the process
// connect roles of one provider.
func (c ProviderConfig) LocalOnly() bool {
	return c.Name == rdmacore.Soft && c.Link != rdmacore.LinkUDP
}

// String is what reports call it.
func (c ProviderConfig) String() string {
	if c.Name == rdmacore.Soft && c.Link != "" {
		return "soft (link " + c.Link + ")"
	}
	return c.Name
}

// LocalOnlyHint is what can be done about roles that cannot reach each other.
const LocalOnlyHint = "soft's links local and packets join roles of one provider: give both roles the same settings, " +
	"or link: udp for devices and other processes"

// Providers are what the roles of a case are on.
type Providers struct {
	// first is that of the first role: the case's clock is its.
	first *rdmacore.Provider
	// others are those of further roles, by their names.
	others map[string]*rdmacore.Provider
}

// One puts all roles on one provider.
func One(provider *rdmacore.Provider) Providers { return Providers{first: provider} }

// With puts a role on another provider than the first.
func (p *Providers) With(role string, provider *rdmacore.Provider) {
	if provider == p.first {
		return
	}
	if p.others == nil {
		p.others = make(map[string]*rdmacore.Provider)
	}
	p.others[role] = provider
}

// First is the provider of the first role, and of what belongs to none.
func (p Providers) First() *rdmacore.Provider { return p.first }

// Of is the provider of a role.
func (p Providers) Of(role string) *rdmacore.Provider {
	if other := p.others[role]; other != nil {
		return other
	}
	return p.first
}

// All are the providers of the roles, each once, the first before the others.
func (p Providers) All(roles []RoleConfig) []*rdmacore.Provider {
	all := []*rdmacore.Provider{p.first}
	for i := range roles {
		if other := p.others[roles[i].Name]; other != nil && !slices.Contains(all, other) {
			all = append(all, other)
		}
	}
	return all
}

// Several reports whether the roles are on more than one provider.
func (p Providers) Several() bool { return len(p.others) > 0 }

// Live counts what lives on all of them.
func (p Providers) Live(roles []RoleConfig) rdmacore.Live {
	live := p.first.Live()
	for _, other := range p.All(roles)[1:] {
		for kind, count := range other.Live() {
			live[kind] += count
		}
	}
	return live
}

// Apart reports whether two roles cannot reach each other.
func (p Providers) Apart(a, b string) bool { return apart(p.Of(a), p.Of(b)) }

// apart reports whether nothing of one provider reaches the other.
func apart(a, b *rdmacore.Provider) bool {
	return a != b && (ConfigOf(a).LocalOnly() || ConfigOf(b).LocalOnly())
}

// ConfigOf is what an open provider is.
func ConfigOf(p *rdmacore.Provider) ProviderConfig {
	return ProviderConfig{Name: p.Name(), Link: p.Link()}
}
