package scenario_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/rdmacore"
)

// roleRecords are what the records say of roles, by case.
type roleRecords struct {
	roles   map[string][]record.RolePlace
	results map[string]record.Result
}

func (p *roleRecords) Wants(kind record.Kind) bool {
	return kind == record.CaseStart || kind == record.CaseEnd
}

func (p *roleRecords) Record(r *record.Record) error {
	_, name, _ := strings.Cut(r.Case, "::")
	if r.Kind == record.CaseStart {
		p.roles[name] = r.Start.Roles
	} else {
		p.results[name] = *r.Result
	}
	return nil
}

func newRoleRecords() *roleRecords {
	return &roleRecords{roles: make(map[string][]record.RolePlace), results: make(map[string]record.Result)}
}

// TestProviders: roles of the same settings share a provider. Each provider draws numbers of its own. A fault of a
// device is that of its role's provider.
func TestProviders(t *testing.T) {
	seen := newRoleRecords()
	opened := make(map[string]uint64)
	totals, err := scenario.Run(t.Context(), load(t, nil, "testdata/run/providers.yaml"), scenario.RunConfig{
		ProviderName: "soft", Consumers: []record.Consumer{seen},
		Open: func(how scenario.Opening) (*rdmacore.Provider, error) {
			opened[how.Config.String()] = *how.Seed
			if how.Virtual {
				t.Error("several providers have one virtual clock")
			}
			return scenario.OpenSoft(how)
		},
	})
	if err != nil || totals.Passed != 2 || totals.Skipped != 1 {
		t.Fatalf("%+v %v %+v", totals, err, seen.results)
	}
	if len(opened) != 2 || opened["soft (link local)"] != 7 || opened["soft (link packets)"] == 7 {
		t.Errorf("opened were %v", opened)
	}
	var on []string
	for _, place := range seen.roles["one provider for the same settings"] {
		on = append(on, place.Role+": "+place.Provider)
	}
	if want := []string{
		"dut: soft (link local)", "same: soft (link local)", "tester: soft (link packets)",
	}; !slices.Equal(on, want) {
		t.Errorf("the records have %q", on)
	}
}

// TestProvidersOfTheRun: a role that chooses nothing is on the provider of the command line or of the file. Steps that
// cannot work there skip the case with the reason.
func TestProvidersOfTheRun(t *testing.T) {
	const meet = "steps:\n  - {role: dut, create_ep: {to: tester, port: 7471}, as: ep}\n"
	for name, test := range map[string]struct {
		text   string
		config scenario.RunConfig
		status record.Status
		reason string
	}{
		"of the file": {
			text:   "provider: soft\nroles: {dut: {}}\nsteps: [{assert: dut.provider.soft}]\n",
			config: scenario.RunConfig{ProviderName: "verbs", FilesChoose: true}, status: record.Passed,
		},
		"the link of the run": {
			text: "roles: {dut: {provider: soft}, tester: {}}\n" +
				"steps: [{assert: dut.provider.link + tester.provider.link == 'packetspackets'}]\n",
			config: scenario.RunConfig{Link: rdmacore.LinkPackets}, status: record.Passed,
		},
		"islands of the run": {
			text:   "roles: {dut: {}, tester: {provider: {soft: {link: packets}}}}\n" + meet,
			config: scenario.RunConfig{Link: "local"}, status: record.Skipped,
			reason: "in line 4 dut on soft (link local) meets tester on soft (link packets), and neither reaches " +
				"the other",
		},
		"one island": {
			text:   "roles: {dut: {}, tester: {provider: {soft: {link: packets}}}}\n" + meet,
			config: scenario.RunConfig{Link: rdmacore.LinkPackets}, status: record.Passed,
		},
		"a capability of a role": {
			text: "roles: {dut: {}, tester: {provider: {soft: {link: packets}}}, third: {}}\n" +
				"steps: [{fault: {link: [dut, third], drop: data, action: corrupt}}]\n",
			status: record.Skipped,
			reason: `it needs fault.packet, and of role dut on the link "local" each message is copied at once`,
		},
		"a requirement of a role": {
			text: "roles: {dut: {}, tester: {provider: {soft: {link: packets}}}}\n" +
				"requires: [dut.provider.link == 'packets']\nsteps: [{log: x}]\n",
			status: record.Skipped, reason: "it requires dut.provider.link == 'packets'",
		},
		"instances": {
			text: "roles: {dut: {count: 2, provider: {soft: {link: packets}}}, tester: {}}\n" +
				"requires: [\"dut[1].provider.link == 'packets'\"]\n" +
				"steps: [{assert: \"dut[0].provider.link == 'packets' && tester.provider.link == 'local'\"}]\n",
			status: record.Passed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "case.yaml")
			if err := os.WriteFile(path, []byte("rdmarun: v1\n"+test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			seen := newRoleRecords()
			test.config.Consumers = []record.Consumer{seen}
			if _, err := scenario.Run(t.Context(), load(t, nil, path), test.config); err != nil {
				t.Fatal(err)
			}
			got := slices.Collect(maps.Values(seen.results))
			if len(got) != 1 || got[0].Status != test.status || !strings.HasPrefix(got[0].Reason, test.reason) {
				t.Errorf("got %+v", got)
			}
			reasons, err := scenario.SkipReasons([]scenario.Selected{firstCase(t, path)}, test.config)
			if err != nil || !strings.HasPrefix(reasons[0], test.reason) {
				t.Errorf("list says %q %v", reasons, err)
			}
		})
	}
}

func firstCase(t *testing.T, path string) scenario.Selected {
	t.Helper()
	s := load(t, nil, path)[0]
	return scenario.Selected{Scenario: s, Case: s.Compiled.Cases[0]}
}

// TestNoDeviceForARole: where there is no device, a case with a role on verbs is skipped, and says which role.
func TestNoDeviceForARole(t *testing.T) {
	if verbs, err := rdmacore.Open("verbs"); err == nil {
		_, err := verbs.DefaultDevice()
		if closing := verbs.Close(); err == nil || closing != nil {
			t.Skip("there is a device")
		}
	}
	path := filepath.Join(t.TempDir(), "case.yaml")
	text := "rdmarun: v1\nroles: {dut: {provider: verbs}, tester: {provider: {soft: {link: packets}}}}\n" +
		"cases: [{name: a, steps: [{log: x}]}, {name: b, steps: [{log: x}]}]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	seen := newRoleRecords()
	totals, err := scenario.Run(t.Context(), load(t, nil, path), scenario.RunConfig{
		ProviderName: "soft", Jobs: 2, Consumers: []record.Consumer{seen},
	})
	if err != nil || totals.Skipped != 2 || !strings.HasPrefix(seen.results["a"].Reason, "role dut is on verbs, and ") {
		t.Errorf("%+v %v %+v", totals, err, seen.results)
	}
}

// TestProvidersReachEachOther: on the link udp, providers of one process are as those of two.
func TestProvidersReachEachOther(t *testing.T) {
	seen := newRoleRecords()
	totals, err := scenario.Run(
		t.Context(), load(t, nil, "testdata/run/providers_udp.yaml"),
		scenario.RunConfig{ProviderName: "soft", Consumers: []record.Consumer{seen}},
	)
	if err != nil || totals.Passed != 1 {
		t.Errorf("%+v %v %+v", totals, err, seen.results)
	}
}

// TestMessageOfPackets: a fault finds the packets of a message by its number on every link.
func TestMessageOfPackets(t *testing.T) {
	for _, link := range []string{"local", "packets", "udp"} {
		t.Run(link, func(t *testing.T) {
			seen := newRoleRecords()
			totals, err := scenario.Run(t.Context(), load(t, nil, "testdata/run/messages.yaml"), scenario.RunConfig{
				ProviderName: "soft", Link: link, Consumers: []record.Consumer{seen},
			})
			if err != nil || totals.Passed != 3 || totals.Failed+totals.Errors+totals.Skipped > 0 {
				t.Errorf("%+v %v %+v", totals, err, seen.results)
			}
		})
	}
}
