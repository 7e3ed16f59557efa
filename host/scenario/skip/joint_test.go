package skip

import (
	"errors"
	"strings"
	"testing"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
	"rdmarun/rdmacore"
)

// TestJoint: a step between two processes needs one provider with the capability.  Instances on hosts of their own must
// not share one, and a condition on roles of several processes must hold.
func TestJoint(t *testing.T) {
	soft := map[string]any{"soft": true, "link": rdmacore.LinkPackets}
	local := map[string]any{"soft": true, "link": rdmacore.LinkLocal}
	device := map[string]any{"soft": false}
	needs := func(capability string) *compile.Case {
		c := elsewhere(caseOf(t, twoRoles, logs), "server")
		c.Needs = []compile.Need{{Capability: capability, Roles: [2]string{"client", "server"}}}
		return c
	}
	spread := elsewhere(
		caseOf(t, "roles: {client: {count: 2, place: {spread: host}}}", logs), "client[1]",
	)
	requires := elsewhere(caseOf(t, twoRoles, "requires: [roles.distinct_hosts]", logs), "server")
	failure := errors.New("failed")
	for name, test := range map[string]struct {
		c              *compile.Case
		client, server map[string]any
		host           string // of the role elsewhere
		err            error
		want           string
	}{
		"no provider with faults":  {c: needs(verb.CanFault), client: device, server: device, want: "it needs fault"},
		"one provider with faults": {c: needs(verb.CanFault), client: device, server: local},
		"no packets": {
			c: needs(verb.CanFaultPacket), client: local, server: device, want: "it needs fault.packet",
		},
		"packets":   {c: needs(verb.CanFaultPacket), client: soft, server: device},
		"two hosts": {c: spread, host: "b"},
		"one host": {
			c: spread, host: "a",
			want: "role client has place: {spread: host}, and client[0] and client[1] are both on a",
		},
		"condition":        {c: requires, host: "b"},
		"failed condition": {c: requires, host: "a", want: "it requires roles.distinct_hosts"},
		"error":            {c: requires, host: "b", err: failure},
	} {
		t.Run(name, func(t *testing.T) {
			here, there := &test.c.Roles[0], &test.c.Elsewhere[0]
			joint := Joint{
				Here:      []Role{{here.Name, here.Group, testbed.Place{Host: "a"}}},
				Elsewhere: []Role{{there.Name, there.Group, testbed.Place{Host: test.host}}},
				Provider: func(role string) map[string]any {
					return map[string]map[string]any{"client": test.client, "server": test.server}[role]
				},
				Holds: func(requirement *compile.Requirement, env expression.Env) (bool, error) {
					if test.err != nil {
						return false, test.err
					}
					return requirement.Holds(env)
				},
			}
			got, err := joint.Reason(test.c)
			if !errors.Is(err, test.err) || test.want == "" && got != "" || !strings.HasPrefix(got, test.want) {
				t.Errorf("%q, %v; want %q", got, err, test.want)
			}
		})
	}
}
