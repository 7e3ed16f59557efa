package scenario_test

import (
	"strings"
	"testing"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario"
)

// places keeps where roles were.
type places struct{ roles []record.RolePlace }

func (p *places) Wants(kind record.Kind) bool { return kind == record.CaseStart }

func (p *places) Record(r *record.Record) error {
	p.roles = r.Start.Roles
	return nil
}

func TestPlaces(t *testing.T) {
	for name, test := range map[string]struct {
		places map[string]scenario.Place
		want   string // addresses, or words of the error
	}{
		"default":           {nil, "127.0.0.1 127.0.0.2"},
		"device":            {map[string]scenario.Place{"client": {Device: "soft0"}}, "127.0.0.1 127.0.0.2"},
		"port":              {map[string]scenario.Place{"": {Device: "soft0", Port: 1}}, "127.0.0.1 127.0.0.2"},
		"GID by index":      {map[string]scenario.Place{"": {GID: "1"}}, "::1 ::1"},
		"GID by address":    {map[string]scenario.Place{"": {GID: "::1"}}, "::1 ::1"},
		"mapped address":    {map[string]scenario.Place{"": {GID: "::ffff:127.0.0.1"}}, "127.0.0.1 127.0.0.2"},
		"role before all":   {map[string]scenario.Place{"": {GID: "1"}, "client": {GID: "0"}, "server": {GID: "0"}}, "127.0.0.1 127.0.0.2"},
		"no such device":    {map[string]scenario.Place{"server": {Device: "mlx5_9"}}, `no device "mlx5_9"; provider soft has soft0`},
		"no such port":      {map[string]scenario.Place{"server": {Device: "soft0", Port: 2}}, "device soft0 has no port 2"},
		"no such GID":       {map[string]scenario.Place{"server": {GID: "7"}}, "has no GID 7; it has 0 127.0.0.1, 1 ::1"},
		"GID of a stranger": {map[string]scenario.Place{"server": {GID: "192.0.2.9"}}, "has no GID 192.0.2.9"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := &places{}
			totals, all := runFiles(t, t.Context(), scenario.RunConfig{Places: test.places, Consumers: []record.Consumer{seen}},
				map[string]string{"count": "1"}, "../../scenarios/rping.yaml")
			var addresses []string
			for _, role := range seen.roles {
				addresses = append(addresses, role.Address)
			}
			got := strings.Join(addresses, " ") + all.results[0].Reason
			if !strings.Contains(got, test.want) {
				t.Errorf("%q; expected %q", got, test.want)
			}
			if passed := totals.Passed == 1; passed != (all.results[0].Reason == "") {
				t.Errorf("%+v", totals)
			}
		})
	}
}

// runSoft runs a file as the command line does on soft, with a provider for each case.
func runSoft(t *testing.T, config scenario.RunConfig, path string) record.Totals {
	t.Helper()
	config.Open, config.ProviderName = scenario.OpenSoft, "soft"
	totals, err := scenario.Run(t.Context(), load(t, nil, path), config)
	if err != nil {
		t.Fatal(err)
	}
	return totals
}

func TestTimeScaleAndStall(t *testing.T) {
	const wall, virtual = "testdata/run/slow_wall.yaml", "testdata/run/slow_virtual.yaml"
	for name, test := range map[string]struct {
		config scenario.RunConfig
		path   string
		passes bool
	}{
		"exact":     {scenario.RunConfig{}, wall, false},
		"stretched": {scenario.RunConfig{TimeScale: 100_000}, wall, true},
		"stalled":   {scenario.RunConfig{TimeScale: 100_000, Stall: 10 * time.Millisecond}, wall, false},
		"virtual":   {scenario.RunConfig{TimeScale: 100_000}, virtual, false}, // exact on every machine
	} {
		t.Run(name, func(t *testing.T) {
			if totals := runSoft(t, test.config, test.path); totals.Passed == 1 != test.passes {
				t.Errorf("%+v", totals)
			}
		})
	}
}

func TestNoThresholds(t *testing.T) {
	const path = "testdata/run/thresholds.yaml"
	held, ignored := runSoft(t, scenario.RunConfig{}, path), runSoft(t, scenario.RunConfig{NoThresholds: true}, path)
	if held.Thresholds == 0 || ignored.Thresholds != 0 {
		t.Errorf("%d and %d thresholds did not hold", held.Thresholds, ignored.Thresholds)
	}
}
