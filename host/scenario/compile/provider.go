package compile

import (
	"cmp"
	"slices"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
	"rdmarun/rdmacore"
)

// fileProvider reads the file's provider, but for the clock.
func (x *expander) fileProvider(scenario *Scenario) {
	written := x.file.Provider
	if written == nil {
		return
	}
	file := x.roleProvider(written)
	scenario.Provider, scenario.Soft.Link = file.Name, file.Link
	scenario.Soft.Seed, scenario.Soft.Seeded = file.Seed, file.Seeded
	scenario.Soft.Legal = file.Legal
	if written.Verbs != nil {
		device := &verb.Argument{Name: "device", Type: verb.Text}
		setKnown(&scenario.Device, x.known(device, written.Verbs.Device, x.global))
	}
}

// clock reads which clock soft has. Several providers have none in common, and packets in sockets take real time, so
// files with any of these run on the wall clock. So do files with guests unless they choose otherwise. While a guest
// computes, or polls its memory or a queue, a virtual clock does not move.
func (x *expander) clock(scenario *Scenario) {
	guests := slices.ContainsFunc(scenario.Roles, func(r testbed.RoleConfig) bool { return r.Guest != nil })
	programs := slices.ContainsFunc(scenario.Roles, func(r testbed.RoleConfig) bool { return r.Program != nil })
	scenario.Soft.Virtual = !guests && !programs && scenario.Soft.Link != rdmacore.LinkUDP
	if x.file.Provider == nil || x.file.Provider.Soft == nil {
		return
	}
	written := x.file.Provider.Soft.Clock
	clock := x.known(
		&verb.Argument{Name: "clock", Type: verb.Word, Words: []string{"virtual", "wall"}}, written, x.global,
	)
	switch {
	case clock == "wall":
		scenario.Soft.Virtual = false
	case clock == "virtual" && scenario.Soft.Link == rdmacore.LinkUDP:
		x.errors.Report(diag.Conflict, written.Span(), "a file on the link udp runs on the wall clock").
			WithHint("packets in sockets take real time; on the link packets a virtual clock moves them")
	case clock == "virtual" && programs:
		x.errors.Report(diag.Conflict, written.Span(), "a file with programs runs on the wall clock").
			WithHint("a program is another process, which has the time of the host")
	case clock == "virtual" && severalProviders(scenario.Roles):
		x.errors.Report(diag.Conflict, written.Span(), "roles of several providers run on the wall clock").
			WithHint("a virtual clock is that of one provider, and knows of no packet of another")
	case clock == "virtual":
		scenario.Soft.Virtual = true
	}
}

// deterministic checks that guests that must be repeatable can be.
func (x *expander) deterministic(scenario *Scenario) {
	for _, role := range x.file.Roles {
		if role.Guest != nil && isTrue(role.Guest.Deterministic) && !scenario.Soft.Virtual {
			x.errors.Report(
				diag.Conflict, role.Guest.Deterministic.Span(), "on the wall clock no guest does the same each time",
			).
				WithHint("provider: {soft: {clock: virtual}}")
		}
	}
}

func isTrue(node *syntax.Node) bool { return node != nil && node.Value == "true" }

// severalProviders reports whether roles name providers that cannot be one.
func severalProviders(roles []testbed.RoleConfig) bool {
	var first testbed.ProviderConfig
	for _, role := range roles {
		switch {
		case role.Provider.Name == "":
		case first.Name == "":
			first = role.Provider
		case role.Provider != first:
			return true
		}
	}
	return false
}

// roleProvider reads the provider of a role, or of the file.
func (d *decoder) roleProvider(written *ast.Provider) testbed.ProviderConfig {
	var config testbed.ProviderConfig
	if written == nil {
		return config
	}
	setKnown(
		&config.Name,
		d.known(&verb.Argument{Name: "provider", Type: verb.Word, Words: rdmacore.Providers()}, written.Name, d.global),
	)
	if soft := written.Soft; soft != nil {
		setKnown(
			&config.Link,
			d.known(&verb.Argument{Name: "link", Type: verb.Word, Words: rdmacore.Links()}, soft.Link, d.global),
		)
		if seed := d.known(&verb.Argument{Name: "seed", Type: verb.Unsigned}, soft.Seed, d.global); seed != nil {
			config.Seed, config.Seeded = seed.(uint64), true
		}
		if legal := d.known(&verb.Argument{Name: "legal", Type: verb.Text}, soft.Legal, d.global); legal != nil {
			var err error
			if config.Legal, err = rdmacore.ParseLegal(legal.(string)); err != nil {
				d.errors.Report(diag.NotOneOf, soft.Legal.Span(), "%v", err)
			}
		}
	}
	return config
}

// Need is a capability that steps need, with the roles of which one must have it; without roles it may be any.
type Need struct {
	Capability string
	Roles      [2]string
}

// Meeting is a step that brings a role together with another.
type Meeting struct {
	Roles [2]string
	Span  diag.Span
}

// needs are the capabilities of steps that run in any case.
func (f *facts) needs() []Need {
	var needs []Need
	add := func(capability string, roles ...string) {
		need := Need{Capability: capability}
		copy(need.Roles[:], roles)
		if capability != "" && !slices.Contains(needs, need) {
			needs = append(needs, need)
		}
	}
	for _, call := range f.calls {
		if call.conditional {
			continue
		}
		ends := call.ends()
		for _, capability := range []string{call.Verb.Capability, call.neededByArguments()} {
			if call.Verb.Measures { // both ends do it
				for _, role := range ends {
					add(capability, role)
				}
			} else if call.role != "" {
				add(capability, call.role)
			} else {
				add(capability, ends...)
			}
		}
	}
	slices.SortFunc(needs, func(a, b Need) int {
		return cmp.Or(cmp.Compare(a.Capability, b.Capability), slices.Compare(a.Roles[:], b.Roles[:]))
	})
	return needs
}

func (call *noted) neededByArguments() string {
	if call.Verb.Needs == nil {
		return ""
	}
	return call.Verb.Needs(call.known())
}

// ends are the roles that the arguments of a call name, as far as they are known. They are a peer, or the two of a
// link or of a measurement.
func (call *noted) ends() []string {
	var roles []string
	for i, argument := range call.Verb.Arguments {
		if i >= len(call.Arguments) || call.Arguments[i] == nil {
			continue
		}
		known, _ := call.Arguments[i].Constant()
		switch name, isName := known.(string); {
		case (argument.Type == verb.Roles || argument.Type == verb.Instances) && known != nil:
			roles = append(roles, known.([]string)...)
		case isName && argument.Type == verb.Peer, isName && argument.Type == verb.Role && call.Verb.Measures:
			roles = append(roles, name)
		}
	}
	return roles
}

// meetings lists the pairs of roles that steps bring together, each pair once.
func (f *facts) meetings() []Meeting {
	var meetings []Meeting
	seen := make(map[[2]string]bool)
	for _, call := range f.calls {
		ends := call.ends()
		if len(ends) == 1 && call.role != "" {
			ends = append(ends, call.role)
		}
		for _, other := range ends[min(1, len(ends)):] { // roles that reach the first reach all
			pair := [2]string{min(ends[0], other), max(ends[0], other)}
			if pair[0] != pair[1] && !seen[pair] {
				seen[pair] = true
				meetings = append(meetings, Meeting{pair, call.span})
			}
		}
	}
	return meetings
}

// lintMeetings reports roles that steps bring together and that cannot reach each other, as far as the file shows.
func (x *expander) lintMeetings(scenario *Scenario, roles []testbed.RoleConfig, meetings []Meeting) {
	on := make(map[string]testbed.ProviderConfig)
	for _, role := range roles {
		config := role.Provider
		if config.Name == rdmacore.Soft {
			config.Link = cmp.Or(config.Link, scenario.Soft.Link)
		}
		on[role.Name] = config
	}
	known := func(c testbed.ProviderConfig) bool {
		return c.Name == rdmacore.Verbs || c.Name == rdmacore.Soft && c.Link != ""
	}
	for _, meeting := range meetings {
		a, b := on[meeting.Roles[0]], on[meeting.Roles[1]]
		if known(a) && known(b) && a != b && (a.LocalOnly() || b.LocalOnly()) {
			x.errors.Report(
				diag.Unreachable, meeting.Span, "%s is on %s and %s on %s: neither reaches the other", meeting.Roles[0],
				a, meeting.Roles[1], b,
			).
				WithHint("%s", testbed.LocalOnlyHint)
		}
	}
}
