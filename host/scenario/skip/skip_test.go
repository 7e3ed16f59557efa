package skip

import (
	"slices"
	"strings"
	"testing"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
	"rdmarun/rdmacore"
)

// open opens soft on a link.
func open(t *testing.T, options ...rdmacore.Option) *rdmacore.Provider {
	t.Helper()
	provider, err := rdmacore.Open("soft", options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := provider.Close(); err != nil {
			t.Error(err)
		}
	})
	return provider
}

// caseOf compiles the only case of a file with these lines.
func caseOf(t *testing.T, lines ...string) *compile.Case {
	t.Helper()
	wrong := &diag.List{}
	source := diag.NewSource("case.yaml", []byte("rdmarun: v1\n"+strings.Join(lines, "\n")+"\n"))
	file := ast.Read(syntax.Parse(source, wrong), verb.NewTable(), wrong)
	scenario := compile.Compile(file, compile.Options{}, wrong)
	if wrong.Len() > 0 {
		t.Fatal(wrong.Sorted()[0])
	}
	return scenario.Cases[0]
}

const (
	twoRoles = "roles: {client: {}, server: {}}"
	logs     = "steps: [{log: x}]"
)

// elsewhere has other processes play some roles of a case.
func elsewhere(c *compile.Case, names ...string) *compile.Case {
	apart := *c
	apart.Roles = nil
	for _, role := range c.Roles {
		if slices.Contains(names, role.Name) {
			apart.Elsewhere = append(apart.Elsewhere, role)
		} else {
			apart.Roles = append(apart.Roles, role)
		}
	}
	return &apart
}

// TestReason: a case runs where its requirements and those of its steps are met. The reason names the first that is
// not met, with what was found.
func TestReason(t *testing.T) {
	local, packets := open(t), open(t, rdmacore.WithLink(rdmacore.LinkPackets))
	fault := "steps: [{fault: {link: [client, server], drop: all}}]"
	damage := "steps: [{fault: {link: [client, server], drop: data, action: corrupt}}]"
	for name, test := range map[string]struct {
		lines []string
		on    *rdmacore.Provider
		want  string
	}{
		"nothing": {[]string{twoRoles, logs}, local, ""},
		"what is there": {
			[]string{twoRoles, "requires: [fault.link, provider.soft, device.srq]", logs}, local,
			"",
		},
		"a constant": {
			[]string{"params: {n: {type: int, default: 7}}", twoRoles, "requires: [n > 6]", logs}, local,
			"",
		},
		"a device": {
			[]string{twoRoles, "requires: [provider.verbs]", logs}, local,
			"it requires provider.verbs, and provider.verbs is false (provider soft)",
		},
		"the second one fails": {
			[]string{twoRoles, "requires: [provider.soft, device.max_sge > 1000]", logs}, local,
			"it requires device.max_sge > 1000, and device.max_sge is 32 (provider soft)",
		},
		"a role's link": {
			[]string{twoRoles, `requires: ["server.provider.link == 'udp'"]`, logs}, local,
			`it requires server.provider.link == 'udp', and server.provider.link is "local"`,
		},
		"a step's fault": {[]string{twoRoles, fault}, local, ""},
		"packets of none": {
			[]string{twoRoles, damage}, local,
			`it needs fault.packet, and on the link "local" each message is copied at once and whole`,
		},
		"packets": {[]string{twoRoles, damage}, packets, ""},
		"in words": {
			[]string{twoRoles, "requires: [fault.packet]", logs}, local,
			"it requires fault.packet, and fault.packet is false (provider soft)",
		},
		"a virtual clock": {
			[]string{twoRoles, "requires: [clock.virtual]", logs}, local,
			"it requires clock.virtual, and clock.virtual is false (provider soft)",
		},
		"iWARP": {
			[]string{twoRoles, "requires: [transport.iwarp]", logs}, local,
			"it requires transport.iwarp, and transport.iwarp is false (provider soft)",
		},
		"RoCE": {[]string{twoRoles, "requires: [transport.roce, transport.ib]", logs}, local, ""},
		"one host": {
			[]string{twoRoles, "requires: [roles.distinct_hosts]", logs}, local,
			"it requires roles.distinct_hosts, and roles.distinct_hosts is false",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Reason(testbed.One(test.on), caseOf(t, test.lines...))
			if err != nil || test.want == "" && got != "" || !strings.HasPrefix(got, test.want) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// TestMatrixOfProviders: a row of a matrix for another provider is skipped, before anything else is looked at.
func TestMatrixOfProviders(t *testing.T) {
	on := testbed.One(open(t))
	c := caseOf(t, twoRoles, "requires: [provider.verbs]", logs)
	for provider, want := range map[string]string{
		"":      "it requires provider.verbs, and provider.verbs is false (provider soft)",
		"soft":  "it requires provider.verbs, and provider.verbs is false (provider soft)",
		"verbs": "its matrix has provider=verbs, and this is provider soft",
	} {
		c.Provider = provider
		if got, err := Reason(on, c); err != nil || got != want {
			t.Errorf("%s: %q, %v", provider, got, err)
		}
	}
}

// TestSeveralProviders: of two roles on different providers one must be able to do what a step needs, for a
// measurement both. Roles meet only where one reaches the other.
func TestSeveralProviders(t *testing.T) {
	local, packets, other := open(t), open(t, rdmacore.WithLink(rdmacore.LinkPackets)), open(t)
	damage := caseOf(t, twoRoles, "steps: [{fault: {link: [client, server], drop: data, action: corrupt}}]")
	for name, test := range map[string]struct {
		client, server *rdmacore.Provider
		want           string
	}{
		"neither":    {local, other, "it needs fault.packet, and of role client on the link \"local\""},
		"the first":  {packets, local, ""},
		"the second": {local, packets, ""},
	} {
		on := testbed.One(test.client)
		on.With("server", test.server)
		c := *damage
		c.Meetings = nil
		if got, err := Reason(on, &c); err != nil || test.want == "" && got != "" ||
			!strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	meets := caseOf(t, twoRoles, logs)
	meets.Meetings = []compile.Meeting{{Roles: [2]string{"client", "server"}}}
	on := testbed.One(local)
	if got, err := Reason(on, meets); err != nil || got != "" {
		t.Errorf("one provider: %q, %v", got, err)
	}
	on.With("server", packets)
	got, err := Reason(on, meets)
	if err != nil || !strings.HasPrefix(got, "in line 0 client on ") ||
		!strings.Contains(got, ", and neither reaches the other ("+testbed.LocalOnlyHint) {
		t.Errorf("islands: %q, %v", got, err)
	}
	if got, err := Reason(on, elsewhere(meets, "server")); err != nil || got != "" {
		t.Errorf("another process has the server: %q, %v", got, err)
	}
}

// TestElsewhere: what concerns roles of other processes is left to all processes together, and what is of roles here is
// not.
func TestElsewhere(t *testing.T) {
	on := testbed.One(open(t))
	for name, test := range map[string]struct {
		requires string
		joint    bool
		want     string // of the reason here
	}{
		"a role elsewhere": {"server.device.atomic", true, ""},
		"the roles":        {"roles.distinct_hosts", true, ""},
		"a role here":      {"client.device.iwarp", false, "it requires client.device.iwarp, and"},
		"the provider":     {"provider.verbs", false, "it requires provider.verbs, and"},
	} {
		c := caseOf(t, twoRoles, "requires: [\""+test.requires+"\"]", logs)
		if isJoint(c, c.Requires[0]) {
			t.Errorf("%s: joint without other processes", name)
		}
		apart := elsewhere(c, "server")
		got, err := Reason(on, apart)
		if isJoint(apart, apart.Requires[0]) != test.joint || err != nil || test.want == "" && got != "" ||
			!strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	damage := caseOf(t, twoRoles, "steps: [{fault: {link: [client, server], drop: data, action: corrupt}}]")
	if got, err := Reason(on, damage); err != nil || got == "" {
		t.Errorf("all roles here: %q, %v", got, err)
	}
	apart := elsewhere(damage, "server")
	if got, err := Reason(on, apart); err != nil || got != "" || !divided(apart, apart.Needs[0]) ||
		divided(damage, damage.Needs[0]) {
		t.Errorf("one role elsewhere: %q, %v", got, err)
	}
	// A need of one role is for its process, and one of any role for each.
	for role, want := range map[string]bool{"server": false, "client": true, "": true} {
		apart.Needs = []compile.Need{{Capability: verb.CanFaultPacket, Roles: [2]string{role}}}
		if got, err := Reason(on, apart); err != nil || (got != "") != want {
			t.Errorf("a need of %q: %q, %v", role, got, err)
		}
	}
	counted := elsewhere(caseOf(t, "roles: {client: {count: 3}, server: {}}", logs), "client[1]", "client[2]")
	if got := Elsewhere(counted); !slices.Equal(got, []string{"client"}) {
		t.Errorf("%q", got)
	}
}

// TestSpread: instances that need hosts of their own cannot be two in one process.
func TestSpread(t *testing.T) {
	on := testbed.One(open(t))
	c := caseOf(t, "roles: {client: {count: 2, place: {spread: host}}, server: {}}", logs)
	const want = "role client has place: {spread: host}, and one process on one host drives several of its instances"
	if got, err := Reason(on, c); err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := Reason(on, elsewhere(c, "client[1]")); err != nil || got != "" {
		t.Errorf("one instance is elsewhere: %q, %v", got, err)
	}
}

// TestHugePages: buffers in huge pages need as many as they fill, rounded up for each.
func TestHugePages(t *testing.T) {
	pages, err := rdmacore.HugePages()
	if err != nil {
		t.Skip(err)
	}
	huge := func(sizes ...int) *compile.Case {
		c := &compile.Case{}
		for _, size := range sizes {
			c.Roles = append(c.Roles, testbed.RoleConfig{Buffers: []testbed.BufferConfig{
				{Backing: rdmacore.BackingHuge, Size: size}, {Size: 1 << 40},
			}})
		}
		return c
	}
	for name, test := range map[string]struct {
		c    *compile.Case
		fits bool
	}{
		"none":              {huge(), true},
		"all that are free": {huge(pages.Free * pages.Size), true},
		"a byte more":       {huge(pages.Free*pages.Size + 1), false},
		"one each":          {huge(slices.Repeat([]int{1}, pages.Free+1)...), false},
	} {
		got := tooFewHugePages(test.c)
		if (got == "") != test.fits || got != "" && !strings.Contains(got, "are free (/proc/sys/vm/nr_hugepages)") {
			t.Errorf("%s: %q with %d pages", name, got, pages.Free)
		}
	}
}

// TestLacks: each capability has a reason of its own, and a provider that has it none.
func TestLacks(t *testing.T) {
	local, packets := open(t), open(t, rdmacore.WithLink(rdmacore.LinkPackets))
	all := map[string]any{"name": "dev", "atomic": true, "srq": true, "mw": true, "timestamps": true}
	none := map[string]any{"name": "dev", "atomic": false}
	for capability, want := range map[string]string{
		verb.CanAtomic: "device dev has no atomic operations", verb.CanShare: "device dev has no shared receive queues",
		verb.CanWindow:      "device dev has no memory windows",
		verb.CanStamp:       "device dev has no time stamps of completions",
		verb.CanCount:       "the kernel counts for no device of provider soft that a role is on",
		verb.CanFaultPacket: `on the link "local" each message is copied at once and whole (--link packets)`,
		verb.CanFault:       "", verb.CanFaultDevice: "", "": "",
	} {
		if got := lacks(local, none, capability, func() bool { return false }); got != want {
			t.Errorf("%s: %q", capability, got)
		}
		if got := lacks(packets, all, capability, func() bool { return true }); got != "" {
			t.Errorf("%s, which is there: %q", capability, got)
		}
	}
}

// TestSurroundings: conditions see the first role's device and provider, the faults that any provider can make, and of
// roles those that they mention.
func TestSurroundings(t *testing.T) {
	local, packets := open(t), open(t, rdmacore.WithLink(rdmacore.LinkPackets), rdmacore.WithVirtualClock())
	c := caseOf(t,
		"params: {n: {type: int, default: 7}}", "roles: {client: {count: 2}, server: {}, watcher: {}}",
		`requires: ["client[1].device.atomic and server.provider.soft"]`, logs)
	on := testbed.One(local)
	env, err := Surroundings(on, c, c.Requires...)
	if err != nil {
		t.Fatal(err)
	}
	fault, clock := env["fault"].(map[string]any), env["clock"].(map[string]any)
	if fault["link"] != true || fault["packet"] != false || clock["virtual"] != false || env["n"] != 7 {
		t.Errorf("%v, %v, %v", fault, clock, env["n"])
	}
	if list, is := env["client"].([]any); !is || len(list) != 2 {
		t.Errorf("%v", env["client"])
	}
	if server, is := env["server"].(map[string]any); !is || server["provider"].(map[string]any)["link"] != "local" {
		t.Errorf("%v", env["server"])
	}
	if _, is := env["watcher"]; is {
		t.Errorf("%v", env["watcher"])
	}
	on.With("watcher", packets)
	if env, err = Surroundings(on, c); err != nil || env["fault"].(map[string]any)["packet"] != true ||
		env["client"] != nil {
		t.Errorf("%v, %v", env, err)
	}
	if env, err = Surroundings(testbed.One(packets), c); err != nil ||
		env["clock"].(map[string]any)["virtual"] != true {
		t.Errorf("%v, %v", env["clock"], err)
	}
	c.Constants = append(c.Constants, compile.Binding{Name: "provider", Value: "mine"})
	if env, err = Surroundings(on, c); err != nil || env["provider"] == "mine" {
		t.Errorf("a constant hides the provider: %v", err)
	}
	// A device that the provider does not have leaves the default's facts, but not in a condition on the role.
	c.Roles[0].Device = "mlx5_9"
	if env, err = Surroundings(on, c); err != nil || env["device"].(map[string]any)["name"] == "mlx5_9" {
		t.Errorf("%v", err)
	}
	if _, err = Surroundings(on, c, c.Requires...); err == nil || !strings.Contains(err.Error(), "role client[0]: ") {
		t.Errorf("%v", err)
	}
}
