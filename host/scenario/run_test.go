package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/diag"
	"rdmarun/rdmacore"
)

// soft opens the embedded provider, and at the end of the test sees to it that nothing of it is left.
func soft(t testing.TB) *rdmacore.Provider {
	t.Helper()
	provider, err := rdmacore.Open("soft")
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

// collector keeps what a test wants to look at.
type collector struct {
	kinds   []record.Kind
	results []record.Result
	steps   []record.Step
	lines   []record.Line
}

func (c *collector) Wants(record.Kind) bool { return true }

func (c *collector) Record(r *record.Record) error {
	c.kinds = append(c.kinds, r.Kind)
	switch r.Kind {
	case record.CaseEnd:
		c.results = append(c.results, *r.Result)
	case record.StepEnd:
		c.steps = append(c.steps, *r.Step)
	case record.Output:
		c.lines = append(c.lines, *r.Line)
	}
	return nil
}

// load checks files that must be good.
func load(t testing.TB, params map[string]string, paths ...string) []scenario.Scenario {
	t.Helper()
	checked := scenario.Check(paths, scenario.Params{Given: params})
	for _, bad := range checked.ParamErrors {
		t.Fatal(bad)
	}
	if checked.Errors.Len() > 0 {
		var text strings.Builder
		checked.Errors.Render(&text, diag.Painter{})
		t.Fatal(text.String())
	}
	return checked.Scenarios
}

// runFiles runs files on soft.
func runFiles(
	t *testing.T, ctx context.Context, config scenario.RunConfig, params map[string]string, paths ...string,
) (record.Totals, *collector) {
	t.Helper()
	seen := &collector{}
	config.Provider = soft(t)
	config.Consumers = append(config.Consumers, seen)
	totals, err := scenario.Run(ctx, load(t, params, paths...), config)
	if err != nil {
		t.Fatal(err)
	}
	return totals, seen
}

func TestPassing(t *testing.T) {
	files, err := filepath.Glob("testdata/run/pass_*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range append(files, "../../scenarios/rping.yaml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var text strings.Builder
			human := terminal.NewHuman(&text, terminal.HumanOptions{})
			totals, _ := runFiles(t, t.Context(), scenario.RunConfig{Consumers: []record.Consumer{human}}, nil, file)
			if totals.Passed == 0 || totals.Failed+totals.Errors+totals.Skipped+totals.NotRun > 0 {
				t.Errorf("%+v\n%s", totals, &text)
			}
		})
	}
}

func TestRpingParameters(t *testing.T) {
	for name, params := range map[string]map[string]string{
		"one":   {"count": "1", "size": "16"},
		"large": {"count": "3", "size": "64KiB"},
		"many":  {"count": "200", "size": "4KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			_, seen := runFiles(t, t.Context(), scenario.RunConfig{}, params, "../../scenarios/rping.yaml")
			result := seen.results[0]
			if result.Status != record.Passed || len(result.Loops) != 1 || len(result.Traffic) != 3 {
				t.Errorf("%+v", result)
			}
		})
	}
}

// TestFailing holds the report of every case that must fail against its golden text.
func TestFailing(t *testing.T) {
	var text strings.Builder
	human := terminal.NewHuman(&text, terminal.HumanOptions{})
	config := scenario.RunConfig{Consumers: []record.Consumer{human}, Rerun: "rdmarun run"}
	totals, _ := runFiles(t, t.Context(), config, nil, "testdata/run/fail_cases.yaml")
	if totals.Passed+totals.Errors+totals.Skipped+totals.NotRun > 0 || totals.Failed < 20 {
		t.Errorf("%+v", totals)
	}
	golden(t, "testdata/run/fail_cases.golden", normal(text.String()))
}

// normal replaces what differs from run to run: which cases were slow, times, ports that the system chose, addresses
// and keys.
func normal(text string) string {
	for _, each := range []struct{ pattern, by string }{
		{`\nslowest\n( .*\n)+`, ""},
		{`\+\d+\.\d{3} \d{3}`, "+T"},
		{` +\d+(\.\d+)? (ns|us|ms|s)\b`, " T"},
		{`got +\d+(\.\d+)?(µs|ms|s)\n`, "got       T\n"},
		{`(127\.0\.0\.\d):\d{5}`, "$1:PORT"},
		{`0x[0-9a-f]{5,}`, "0xN"},
		{`rkey=0x[0-9a-f]+`, "rkey=0xN"},
	} {
		text = regexp.MustCompile(each.pattern).ReplaceAllString(text, each.by)
	}
	return text
}

// TestVirtualClock waits for hours that take no time: what a scenario waits for and measures runs on the
// provider's clock.
func TestVirtualClock(t *testing.T) {
	provider, err := rdmacore.Open("soft", rdmacore.WithVirtualClock())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := provider.Close(); err != nil {
			t.Error(err)
		}
	}()
	seen := &collector{}
	config := scenario.RunConfig{Provider: provider, Consumers: []record.Consumer{seen}}
	totals, err := scenario.Run(t.Context(), load(t, nil, "testdata/run/virtual.yaml"), config)
	if err != nil || totals.Passed != 1 {
		t.Errorf("%v %+v %+v", err, totals, seen.results)
	}
}

// untilItWaits is more than a busy machine needs to come to the step that waits, and far less than that waits.
const untilItWaits = 2 * time.Second

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(untilItWaits, func() { cancel(errors.New("interrupted (test)")) })
	totals, seen := runFiles(t, ctx, scenario.RunConfig{}, nil, "testdata/run/long.yaml")
	if !totals.Interrupted || totals.TimedOut || totals.NotRun != 1 {
		t.Errorf("%+v", totals)
	}
	if len(seen.results) != 1 || seen.results[0].Status != record.Interrupted ||
		seen.results[0].Reason != "interrupted (test)" {
		t.Fatalf("%+v", seen.results)
	}
	if len(seen.lines) != 1 || seen.lines[0].Text != "finally" {
		t.Errorf("`finally` did not run: %+v", seen.lines)
	}
	checkStopped(t, &seen.results[0])
}

// checkStopped wants that a case which was ended from outside says in which step, and what led to it.
func checkStopped(t *testing.T, result *record.Result) {
	t.Helper()
	if len(result.Failures) != 1 {
		t.Fatalf("%+v", result)
	}
	f := &result.Failures[0]
	last := f.Timeline[len(f.Timeline)-1]
	if f.Kind != "stopped" || f.What != result.Reason || f.Action != "wait_event" || f.Line != 8 ||
		len(f.Excerpt) != 2 ||
		len(f.Timeline) != 3 || last.Line != 8 || !strings.Contains(last.Text, "FAILED: "+result.Reason) {
		t.Errorf("%+v", f)
	}
}

func TestOutOfTime(t *testing.T) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), untilItWaits, errors.New("out of time"))
	defer cancel()
	totals, seen := runFiles(t, ctx, scenario.RunConfig{}, nil, "testdata/run/long.yaml")
	if !totals.TimedOut || totals.Interrupted || len(seen.results) != 1 || seen.results[0].Status != record.TimedOut {
		t.Fatalf("%+v %+v", totals, seen.results)
	}
	checkStopped(t, &seen.results[0])
}

// virtualLab waits for a minute that takes no time, and then for what does not come.
const virtualLab = `rdmarun: v1
roles: {a: {}}
steps:
  - {sleep: 1m}
  - {role: a, create_ep: {passive: true, port: 7512}, as: ep}
  - {role: a, wait_event: {ep: ep, within: 3s}}
`

// TestVirtualTimes: steps and timelines have the times of the scenario's clock, and also wall-clock times.
func TestVirtualTimes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lab.yaml")
	if err := os.WriteFile(path, []byte(virtualLab), 0o600); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	seen := &collector{}
	config := scenario.RunConfig{Open: scenario.OpenSoft, ProviderName: "soft", Consumers: []record.Consumer{
		seen, terminal.NewHuman(&text, terminal.HumanOptions{Steps: true}),
	}}
	if _, err := scenario.Run(t.Context(), load(t, nil, path), config); err != nil {
		t.Fatal(err)
	}
	var times []record.StepTimes
	for _, step := range seen.steps {
		if step.Clock == nil || step.Took > 30*time.Second {
			t.Fatalf("%+v", step)
		}
		times = append(times, step.OnClock())
	}
	if want := []record.StepTimes{
		{Took: time.Minute}, {At: time.Minute}, {At: time.Minute, Took: 3 * time.Second},
	}; !slices.Equal(times, want) {
		t.Errorf("%v, want %v", times, want)
	}
	for _, want := range []string{
		"+1m  3.00 s  a        wait_event ep", "on the virtual clock)", "+60.000 000  a  wait_event ep",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
}

// TestDrawnSeed: what soft's numbers were drawn from is in the text, the records and the command that repeats a
// failure.
func TestDrawnSeed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lab.yaml")
	fixed := filepath.Join(filepath.Dir(path), "fixed.yaml")
	if err := errors.Join(
		os.WriteFile(path, []byte(virtualLab), 0o600),
		os.WriteFile(fixed, []byte(virtualLab+"provider: {soft: {seed: 7}}\n"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	var opened []uint64
	seeds := &seedCollector{}
	config := scenario.RunConfig{
		ProviderName: "soft", Drawn: 1234, Repeat: 2, Rerun: "rdmarun run",
		Consumers: []record.Consumer{seeds, terminal.NewHuman(&text, terminal.HumanOptions{})},
		Open: func(how scenario.Opening) (*rdmacore.Provider, error) {
			opened = append(opened, *how.Seed)
			return scenario.OpenSoft(how)
		},
	}
	if _, err := scenario.Run(t.Context(), load(t, nil, path, fixed), config); err != nil {
		t.Fatal(err)
	}
	if want := []uint64{1234, 7, 1235, 7}; !slices.Equal(seeds.found, want) || !slices.Equal(opened, want) {
		t.Errorf("the records have %v, the provider was opened with %v; want %v", seeds.found, opened, want)
	}
	if seeds.run != 1234 || seeds.rerun != "rdmarun run --seed 1234" {
		t.Errorf("the run has %d, %q", seeds.run, seeds.rerun)
	}
	for _, want := range []string{
		"on provider soft, seed 1234\n", "rerun: rdmarun run --seed 1234 " + path,
		"rerun: rdmarun run --seed 1235 " + path, "rerun: rdmarun run " + fixed,
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
}

// seedCollector keeps the seeds of a run and of its cases.
type seedCollector struct {
	run   uint64
	rerun string
	found []uint64
}

func (c *seedCollector) Wants(record.Kind) bool { return true }

func (c *seedCollector) Record(r *record.Record) error {
	switch {
	case r.Run != nil:
		c.run, c.rerun = *r.Run.Seed, r.Run.Rerun
	case r.Start != nil:
		c.found = append(c.found, *r.Start.Seed)
	}
	return nil
}

// TestNameServerThatIsSilent interrupts a step that waits for one.
func TestNameServerThatIsSilent(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 16) // both families, and whatever is asked again
	resolver := net.DefaultResolver
	defer func() { net.DefaultResolver = resolver }()
	net.DefaultResolver = &net.Resolver{PreferGo: true,
		Dial: func(asked context.Context, _, _ string) (net.Conn, error) {
			cancel(errors.New("interrupted (test)"))
			<-asked.Done()
			ended <- asked.Err()
			return nil, asked.Err()
		}}
	totals, seen := runFiles(t, ctx, scenario.RunConfig{}, nil, "testdata/run/name.yaml")
	if !totals.Interrupted || len(seen.results) != 1 || seen.results[0].Status != record.Interrupted {
		t.Errorf("%+v %+v", totals, seen.results)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the question ended with: %v", err) // else by its own limit, seconds later
	}
}

func TestSelection(t *testing.T) {
	const file = "testdata/run/pass_cases.yaml"
	for name, test := range map[string]struct {
		ids  []string
		runs int
	}{
		"all":     {nil, 5},
		"one":     {[]string{file + "::port in use"}, 1},
		"pattern": {[]string{"*::*no process*"}, 2},
		"several": {[]string{"*::port*", "*::no process listens"}, 2},
		"none":    {[]string{"*::something else"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			totals, _ := runFiles(
				t, t.Context(), scenario.RunConfig{Selection: scenario.Selection{IDs: test.ids}}, nil, file,
			)
			if totals.Passed != test.runs || totals.Failed > 0 {
				t.Errorf("%+v", totals)
			}
		})
	}
}

// TestMissingParameter skips what lacks a parameter, and says which.
func TestMissingParameter(t *testing.T) {
	totals, seen := runFiles(t, t.Context(), scenario.RunConfig{}, nil, "testdata/run/needs_parameter.yaml")
	if totals.Skipped != 1 || !strings.Contains(seen.results[0].Reason, "-p peer=") {
		t.Errorf("%+v %+v", totals, seen.results)
	}
	totals, _ = runFiles(
		t, t.Context(), scenario.RunConfig{}, map[string]string{"peer": "127.0.0.1"},
		"testdata/run/needs_parameter.yaml",
	)
	if totals.Passed != 1 {
		t.Errorf("%+v", totals)
	}
}

// TestRecords looks at the stream itself.
func TestRecords(t *testing.T) {
	_, seen := runFiles(
		t, t.Context(), scenario.RunConfig{}, map[string]string{"count": "1"}, "../../scenarios/rping.yaml",
	)
	if !slices.Equal(seen.kinds[:3], []record.Kind{record.RunStart, record.DeviceUsed, record.CaseStart}) ||
		seen.kinds[len(seen.kinds)-1] != record.RunEnd {
		t.Errorf("%v", seen.kinds)
	}
	if len(seen.steps) != seen.results[0].Steps {
		t.Errorf("%d records of %d steps", len(seen.steps), seen.results[0].Steps)
	}
	for _, step := range seen.steps {
		if step.Line == 0 || step.Column == 0 || step.Action == "" || !step.OK {
			t.Errorf("%+v", step)
		}
	}
}

// TestNoDevice makes a role of a device that is not there: the environment's fault, not the test's.
func TestNoDevice(t *testing.T) {
	totals, seen := runFiles(t, t.Context(), scenario.RunConfig{}, nil, "testdata/run/no_device.yaml")
	if totals.Errors != 1 || totals.Failed > 0 || !strings.Contains(seen.results[0].Reason, `no device "mlx5_9"`) {
		t.Errorf("%+v %+v", totals, seen.results)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// caseEnds prints how each case ended.
type caseEnds struct{}

func (caseEnds) Wants(kind record.Kind) bool { return kind == record.CaseEnd }

func (caseEnds) Record(r *record.Record) error {
	fmt.Println(r.Case, r.Result.Status)
	return nil
}

// A file is checked before anything runs, and run on a provider.
func Example() {
	checked := scenario.Check([]string{"../../scenarios/rping.yaml"}, scenario.Params{})
	if checked.Errors.Len() > 0 {
		fmt.Println(checked.Errors.Sorted())
		return
	}
	totals, err := scenario.Run(context.Background(), checked.Scenarios, scenario.RunConfig{
		Open:      scenario.OpenSoft,
		Consumers: []record.Consumer{caseEnds{}},
	})
	fmt.Println(totals.Passed, "passed", err)
	// Output:
	// ../../scenarios/rping.yaml passed
	// 1 passed <nil>
}
