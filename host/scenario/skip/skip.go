// Package skip decides whether a case can run here, by its requirements and the providers.  It creates nothing for the
// case.  joint.go decides it for several processes together.  surroundings.go has the values that conditions see of
// providers, devices and roles.
package skip

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
	"rdmarun/rdmacore"
)

// Reason is the reason why a case cannot run on these providers; "" when it can.
func Reason(on testbed.Providers, c *compile.Case) (string, error) {
	if reason := cmp.Or(otherProvider(on, c), unreachable(on, c), tooFewHosts(c), tooFewHugePages(c)); reason != "" {
		return reason, nil
	}
	if len(c.Needs)+len(c.Requires) == 0 {
		return "", nil
	}
	env, err := Surroundings(on, c, c.Requires...)
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
			continue // exec checks it when it knows all roles
		}
		holds, err := requirement.Holds(env)
		if err != nil {
			return "", fmt.Errorf("requires %s: %w", requirement.Text, err)
		}
		if !holds {
			return fmt.Sprintf("it requires %s%s", requirement.Text, because(requirement, c, on, env)), nil
		}
	}
	return "", nil
}

// isJoint reports whether a condition is on roles of several processes, which check it together.
func isJoint(c *compile.Case, requirement *compile.Requirement) bool {
	return len(c.Elsewhere) > 0 && requirement.Mentions(append(Elsewhere(c), "roles")...)
}

// Elsewhere returns the roles of other processes, as the file writes them.
func Elsewhere(c *compile.Case) (written []string) {
	for _, role := range c.Elsewhere {
		written = append(written, role.Written())
	}
	return slices.Compact(written)
}

// unmet is the reason why a requirement of steps is not met; "" when it is.  Of several roles, one must meet it.
func unmet(on testbed.Providers, c *compile.Case, env expression.Env, need compile.Need) (reason string, err error) {
	if first := need.Roles[0]; first != "" && !plays(c, first) || divided(c, need) {
		return "", nil // its process reports it, or all together (Joint)
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

// plays reports whether a role of the case is here.  Each of several processes has some of them.
func plays(c *compile.Case, role string) bool {
	return slices.ContainsFunc(c.Roles, func(r testbed.RoleConfig) bool { return r.Name == role })
}

// divided reports whether one of two roles must meet a requirement, and one of them is in another process.
func divided(c *compile.Case, need compile.Need) bool {
	return need.Roles[1] != "" && !(plays(c, need.Roles[0]) && plays(c, need.Roles[1]))
}

func hasCounters(on testbed.Providers, roles []testbed.RoleConfig) func() bool {
	return func() bool { return testbed.HasCounters(on, os.DirFS("/"), roles) }
}

// lacks is the reason why a provider or a device lacks a capability; "" when it does not.
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

// unreachable is the reason to skip a case with roles that cannot reach each other.
func unreachable(on testbed.Providers, c *compile.Case) string {
	if !on.Several() {
		return ""
	}
	for _, meeting := range c.Meetings {
		if a, b := meeting.Roles[0], meeting.Roles[1]; plays(c, a) && plays(c, b) && on.Apart(a, b) {
			return fmt.Sprintf("in line %d %s on %s meets %s on %s, and neither reaches the other (%s)",
				meeting.Span.Line, a, testbed.ConfigOf(on.Of(a)), b, testbed.ConfigOf(on.Of(b)), testbed.LocalOnlyHint)
		}
	}
	return ""
}

// ofProvider are the surroundings that differ between providers.
var ofProvider = []string{"provider", "driver", "device", "transport", "fault", "clock"}

// because adds the values that were found to a reason.
func because(
	requirement *compile.Requirement, c *compile.Case, on testbed.Providers, env expression.Env,
) string {
	provider := on.First()
	for _, role := range c.Roles {
		if role.Program != nil && strings.Contains(requirement.Text, "program."+role.Written()) {
			if missing := missingProgram(on, role); missing != "" {
				return ": " + missing
			}
		}
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

// otherProvider is the reason to skip a row of a matrix that is for another provider.
func otherProvider(on testbed.Providers, c *compile.Case) string {
	name := on.First().Name()
	if c.Provider == "" || c.Provider == name {
		return ""
	}
	return fmt.Sprintf("its matrix has provider=%s, and this is provider %s", c.Provider, name)
}

// tooFewHosts is the reason to skip a case with a counted role that needs a host for each instance, when two are here.
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

// tooFewHugePages is the reason to skip a case that needs more huge pages than there are.
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
		"its buffers need %d huge pages of %dKiB, and %d are free (/proc/sys/vm/nr_hugepages)", need, pages.Size>>10,
		pages.Free,
	)
}
