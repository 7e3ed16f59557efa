package exec

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/environment"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
	"rdmarun/rdmacore"
)

// SkipReason tells why a case cannot run on providers, without trying; "" when it can.
func SkipReason(on testbed.Providers, c *compile.Case) (string, error) {
	if reason := cmp.Or(otherProvider(on, c), unreachable(on, c), tooFewHosts(c), tooFewHugePages(c)); reason != "" {
		return reason, nil
	}
	if len(c.Needs)+len(c.Requires) == 0 {
		return "", nil
	}
	env, err := surroundings(on, c, c.Requires...)
	if err != nil {
		return "", err
	}
	for _, need := range c.Needs {
		reason, err := unmet(on, c, env, need)
		if err != nil {
			return "", err
		}
		if reason != "" {
			return "it needs " + need.Capability + ", and " + reason, nil
		}
	}
	for _, requirement := range c.Requires {
		if isJoint(c, requirement) {
			continue // see gather
		}
		holds, err := requirement.Holds(env)
		if err != nil {
			return "", fmt.Errorf("requires %s: %w", requirement.Text, err)
		}
		if !holds {
			return fmt.Sprintf("it requires %s%s", requirement.Text, because(requirement, c, on.First(), env)), nil
		}
	}
	return "", nil
}

// isJoint tells whether a condition is one on roles of several processes, which these judge together.
func isJoint(c *compile.Case, requirement *compile.Requirement) bool {
	return len(c.Elsewhere) > 0 && requirement.Mentions(append(elsewhere(c), "roles")...)
}

// elsewhere are the roles that other processes play, as the file has them.
func elsewhere(c *compile.Case) (written []string) {
	for _, role := range c.Elsewhere {
		written = append(written, role.Written())
	}
	return slices.Compact(written)
}

// unmet says why something that steps need is not there; "" when it is.  Of several roles one must have it.
func unmet(on testbed.Providers, c *compile.Case, env expression.Env, need compile.Need) (reason string, err error) {
	if first := need.Roles[0]; first != "" && !plays(c, first) || divided(c, need) {
		return "", nil // the process that does it says so, or both together (judgeTogether)
	}
	if !on.Several() {
		return lacks(on.First(), env["device"].(map[string]any), need.Capability, hasCounters(on, c.Roles)), nil
	}
	for _, role := range c.Roles {
		if need.Roles[0] != "" && !slices.Contains(need.Roles[:], role.Name) {
			continue
		}
		device, err := testbed.Device(on.Of(role.Name), role.Device)
		if err != nil {
			return "", err
		}
		facts, err := deviceFacts(device)
		if err != nil {
			return "", err
		}
		why := lacks(on.Of(role.Name), facts, need.Capability, hasCounters(on, []testbed.RoleConfig{role}))
		if why == "" {
			return "", nil
		}
		reason = cmp.Or(reason, "of role "+role.Name+" "+why)
	}
	return reason, nil
}

// plays tells whether a role of the case is here; of a run of several processes each has some of them.
func plays(c *compile.Case, role string) bool {
	return slices.ContainsFunc(c.Roles, func(r testbed.RoleConfig) bool { return r.Name == role })
}

// divided tells whether one of two roles must have something, and one of them is elsewhere.
func divided(c *compile.Case, need compile.Need) bool {
	return need.Roles[1] != "" && !(plays(c, need.Roles[0]) && plays(c, need.Roles[1]))
}

func hasCounters(on testbed.Providers, roles []testbed.RoleConfig) func() bool {
	return func() bool { return testbed.HasCounters(on, os.DirFS("/"), roles) }
}

// lacks says why a provider or a device cannot do something; "" when it can.
func lacks(provider *rdmacore.Provider, device map[string]any, capability string, counts func() bool) string {
	ofDevice := map[string]string{
		verb.CanAtomic: "atomic operations", verb.CanShare: "shared receive queues", verb.CanWindow: "memory windows",
		verb.CanStamp: "time stamps of completions",
	}
	switch {
	case capability == verb.CanFault && !provider.CanFault():
		return fmt.Sprintf("provider %s cannot drop messages on request (soft can)", provider.Name())
	case capability == verb.CanFaultPacket && provider.Link() == "":
		return fmt.Sprintf("provider %s cannot apply faults to packets (soft can)", provider.Name())
	case capability == verb.CanFaultPacket && !provider.SendsPackets():
		return fmt.Sprintf("on the link %q each message is copied at once and whole (--link packets)", provider.Link())
	case capability == verb.CanFaultDevice && !provider.CanFault():
		return fmt.Sprintf("provider %s cannot remove a device on request (soft can)", provider.Name())
	case capability == verb.CanCount && !counts():
		return fmt.Sprintf("the kernel counts for no device of provider %s that a role is on", provider.Name())
	case ofDevice[capability] != "" && device[strings.TrimPrefix(capability, "device.")] != true:
		return fmt.Sprintf("device %s has no %s", device["name"], ofDevice[capability])
	}
	return ""
}

// unreachable is the reason of a case that brings roles together of which neither reaches the other.
func unreachable(on testbed.Providers, c *compile.Case) string {
	if !on.Several() {
		return ""
	}
	for _, meeting := range c.Meetings {
		if a, b := meeting.Roles[0], meeting.Roles[1]; plays(c, a) && plays(c, b) && on.Apart(a, b) {
			return fmt.Sprintf("in line %d %s on %s meets %s on %s, and neither reaches the other (%s)",
				meeting.Span.Line, a, testbed.ConfigOf(on.Of(a)), b, testbed.ConfigOf(on.Of(b)), testbed.IslandHint)
		}
	}
	return ""
}

// ofProvider are the surroundings that another provider may have.
var ofProvider = []string{"provider", "driver", "device", "transport", "fault", "clock"}

// because adds what is there instead of what is required.
func because(
	requirement *compile.Requirement, c *compile.Case, provider *rdmacore.Provider, env expression.Env,
) string {
	for _, role := range c.Roles {
		if role.Guest != nil && role.Guest.Missing != "" &&
			strings.Contains(requirement.Text, "guest."+role.Written()) {
			return ": " + role.Guest.Missing
		}
	}
	found := strings.Join(requirement.Found(env), ", ")
	ofThis := requirement.Mentions(ofProvider...)
	switch {
	case found != "" && ofThis:
		return fmt.Sprintf(", and %s (provider %s)", found, provider.Name())
	case found != "":
		return ", and " + found
	case ofThis:
		return fmt.Sprintf(", and this is provider %s", provider.Name())
	}
	return ""
}

// otherProvider is the reason of a case with a matrix that speaks of another provider.
func otherProvider(on testbed.Providers, c *compile.Case) string {
	name := on.First().Name()
	if c.Provider == "" || c.Provider == name {
		return ""
	}
	return fmt.Sprintf("its matrix has provider=%s, and this is provider %s", c.Provider, name)
}

// tooFewHosts is the reason of a case with a counted role, each instance of which wants a host of its own, and two are
// here.
func tooFewHosts(c *compile.Case) string {
	here := make(map[string]bool)
	for _, role := range c.Roles {
		if role.Spread && here[role.Group] {
			return fmt.Sprintf(
				"role %s has place: {spread: host}, and one process on one host drives several of its instances",
				role.Group,
			)
		}
		here[role.Group] = true
	}
	return ""
}

// tooFewHugePages is the reason of a case with more buffers in huge pages than there are pages.
func tooFewHugePages(c *compile.Case) string {
	var sizes []int
	for _, role := range c.Roles {
		for _, buffer := range role.Buffers {
			if buffer.Backing == rdmacore.BackingHuge {
				sizes = append(sizes, buffer.Size)
			}
		}
	}
	if sizes == nil {
		return ""
	}
	pages, err := rdmacore.HugePages()
	if err != nil {
		return fmt.Sprintf("its buffers want huge pages: %v", err)
	}
	need := 0
	for _, size := range sizes {
		need += (size + pages.Size - 1) / pages.Size
	}
	if need <= pages.Free {
		return ""
	}
	return fmt.Sprintf(
		"its buffers need %d huge pages of %d KiB, and %d are free (/proc/sys/vm/nr_hugepages)", need, pages.Size>>10,
		pages.Free,
	)
}

// surroundings are the values of compile.Surroundings: those of the device of the case's first role, or else of the
// provider's default; and of the roles that the conditions mention.
func surroundings(on testbed.Providers, c *compile.Case, conditions ...*compile.Requirement) (expression.Env, error) {
	provider := on.First()
	device, err := provider.DefaultDevice()
	if len(c.Roles) > 0 && c.Roles[0].Device != "" {
		if named, unknown := testbed.Device(provider, c.Roles[0].Device); unknown == nil {
			device, err = named, nil
		}
	}
	if err != nil {
		return nil, err
	}
	facts, err := deviceFacts(device)
	if err != nil {
		return nil, err
	}
	ports, err := device.Ports()
	if err != nil {
		return nil, err
	}
	env, err := mentionedRoles(on, c, conditions)
	if err != nil {
		return nil, err
	}
	iwarp, faults, packets := device.IWARP(), false, false
	for _, each := range on.All(c.Roles) {
		faults, packets = faults || each.CanFault(), packets || each.SendsPackets()
	}
	roce := !iwarp &&
		slices.ContainsFunc(ports, func(port rdmacore.Port) bool {
			return port.LinkLayer == rdmacore.LinkLayerEthernet
		})
	guests := make(map[string]any)
	for _, role := range c.Roles {
		if role.Guest != nil {
			guests[role.Written()] = role.Guest.Missing == ""
		}
	}
	distinct, err := testbed.DistinctRoles(on, c.Roles)
	if err != nil {
		distinct = testbed.Distinct{} // the testbed will say what is missing
	}
	maps.Copy(env, expression.Env{
		"provider":  providerFacts(provider),
		"clock":     map[string]any{"virtual": provider.Clock().Virtual()},
		"transport": map[string]any{"ib": !iwarp, "roce": roce, "iwarp": iwarp},
		"device":    facts,
		"driver":    environment.Driver(provider.Name(), device.Name()),
		"fault":     map[string]any{"link": faults, "cm": faults, "data": faults, "device": faults, "packet": packets},
		"guest":     guests,
		"roles": map[string]any{
			"distinct_hosts": distinct.Hosts, "distinct_devices": distinct.Devices,
			"distinct_addresses": distinct.Addresses,
		},
	})
	for _, constant := range c.Constants {
		if _, taken := env[constant.Name]; !taken {
			env[constant.Name] = constant.Value
		}
	}
	return env, nil
}

// mentionedRoles are the facts of the roles that conditions mention.
func mentionedRoles(on testbed.Providers, c *compile.Case, conditions []*compile.Requirement) (expression.Env, error) {
	env := make(expression.Env)
	for _, role := range c.Roles {
		mentions := func(r *compile.Requirement) bool { return r.Mentions(role.Written()) }
		if !slices.ContainsFunc(conditions, mentions) {
			continue
		}
		device, err := testbed.Device(on.Of(role.Name), role.Device)
		if err != nil {
			return nil, fmt.Errorf("role %s: %w", role.Name, err)
		}
		facts, err := deviceFacts(device)
		if err != nil {
			return nil, fmt.Errorf("role %s: %w", role.Name, err)
		}
		object := map[string]any{"device": facts, "provider": providerFacts(on.Of(role.Name))}
		if role.Group == "" {
			env[role.Name] = object
		} else {
			list, _ := env[role.Group].([]any)
			env[role.Group] = append(list, object)
		}
	}
	return env, nil
}

// providerFacts are what expressions see of a provider.
func providerFacts(provider *rdmacore.Provider) map[string]any {
	soft := provider.Name() == testbed.Soft
	return map[string]any{"name": provider.Name(), "soft": soft, "verbs": !soft, "link": provider.Link()}
}

// deviceFacts are what expressions see of a device; which of it stands where, package compile says.
func deviceFacts(device *rdmacore.Device) (map[string]any, error) {
	attr, err := device.Attr()
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"name": device.Name(), "driver": environment.Driver(device.Provider().Name(), device.Name()),
		"iwarp": device.IWARP(), "atomic": attr.Atomic, "srq": attr.MaxSRQ > 0, "mw": attr.MaxMW > 0,
		"timestamps": attr.CompletionTimestampMask != 0, "flush": attr.Can(rdmacore.CapFlushGlobal),
		"flush_persistent": attr.Can(rdmacore.CapFlushPersistent), "atomic_write": attr.Can(rdmacore.CapAtomicWrite),
		"max_qp_rd_atom": attr.MaxQPRdAtom, "max_qp_init_rd_atom": attr.MaxQPInitRdAtom,
		"max_qp": attr.MaxQP, "max_qp_wr": attr.MaxQPWR, "max_sge": attr.MaxSGE, "max_cqe": attr.MaxCQE,
	}, nil
}
