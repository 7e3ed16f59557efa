package skip

import (
	"fmt"
	"slices"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
	"rdmarun/rdmacore"
)

// Joint is what a process knows of a case after all its processes have sent the facts of their roles.
type Joint struct {
	// Here are the roles of this process, Elsewhere those of the others.
	Here, Elsewhere []Role
	// Provider returns the facts of a role's provider.
	Provider func(role string) map[string]any
	// Holds evaluates a condition with these values, in addition to the surroundings of this process.
	Holds func(*compile.Requirement, expression.Env) (bool, error)
}

// Role is a role, with its host and device.
type Role struct {
	Name, Group string
	Place       testbed.Place
}

// Reason is the reason why the processes cannot run a case together; "" when they can.  Each of them has checked before
// what it can check alone.
func (j *Joint) Reason(c *compile.Case) (string, error) {
	for _, need := range c.Needs {
		if divided(c, need) && !slices.ContainsFunc(need.Roles[:], func(role string) bool {
			return j.meets(role, need.Capability)
		}) {
			return fmt.Sprintf(
				"it needs %s, and neither %s nor %s is on a provider that has it (soft)", need.Capability,
				need.Roles[0], need.Roles[1],
			), nil
		}
	}
	if reason := j.crowded(c); reason != "" {
		return reason, nil
	}
	for _, requirement := range c.Requires {
		if !isJoint(c, requirement) {
			continue
		}
		if holds, err := j.Holds(requirement, expression.Env{"roles": testbed.Distinct(j.places())}); err != nil {
			return "", fmt.Errorf("requires %s: %w", requirement.Text, err)
		} else if !holds {
			return "it requires " + requirement.Text, nil
		}
	}
	return "", nil
}

// meets reports whether the provider of a role has a capability of faults.
func (j *Joint) meets(role, capability string) bool {
	provider := j.Provider(role)
	return provider["soft"] == true && (capability != verb.CanFaultPacket || provider["link"] != rdmacore.LinkLocal)
}

// places are the hosts and devices of the roles of all processes.
func (j *Joint) places() (places []testbed.Place) {
	for _, role := range slices.Concat(j.Here, j.Elsewhere) {
		places = append(places, role.Place)
	}
	return places
}

// crowded is the reason to skip a case with a counted role that needs a host for each instance, when two share one.
func (j *Joint) crowded(c *compile.Case) string {
	for i, own := range c.Roles {
		for _, other := range j.Elsewhere {
			if own.Spread && other.Group == own.Group && other.Place.Host == j.Here[i].Place.Host {
				return fmt.Sprintf(
					"role %s has place: {spread: host}, and %s and %s are both on %s", own.Group, own.Name, other.Name,
					other.Place.Host,
				)
			}
		}
	}
	return ""
}
