package scenario

import (
	"context"
	"errors"
	"sync"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/exec"
	"rdmarun/rdmacore"
)

// RunConfig says how to run scenarios.
type RunConfig struct {
	// Provider is what all cases run on, one after another; nil: Open makes one for each case.
	Provider *rdmacore.Provider
	// Open makes the provider of one case, which is closed after it.  The seed is Seed, or what was drawn, for the
	// first attempt of a case and a number of its own for each further one; nil when there is none, or the file's.
	Open func(c Selected, seed *uint64) (*rdmacore.Provider, error)
	// ProviderName is what records call it; empty: the name of Provider.
	ProviderName string
	Selection    Selection
	// Jobs is how many cases run at once, which needs Open; 0 is 1.
	Jobs int
	// Repeat is how often each case runs; 0 is once.
	Repeat int
	// UntilFail repeats all cases until one fails.
	UntilFail bool
	// Retries is how often a case that failed is tried again.  One that passes then counts as passed,
	// and as flaky.
	Retries int
	// FailFast starts no further case after a failure.
	FailFast bool
	// Strict counts a case that is skipped as failed.
	Strict bool
	// Seed is what soft's random numbers are drawn from, whatever files say.
	Seed *uint64
	// Drawn takes its place where neither it nor a file says one, so that a failure can be repeated; 0: each provider
	// draws its own, which nobody gets to know.
	Drawn     uint64
	Consumers []record.Consumer
	// Rerun is the command that runs the same again, without files: "rdmarun run -P verbs".
	Rerun string
	// Environment is noted in the records: facts of where the run takes place.
	Environment map[string]string
	// Places are where roles run, by their names; that of "" is for roles without one of their own.  They
	// come before what the scenario says.
	Places map[string]Place
	// TimeScale stretches limits of the wall's time, for slow machines: took.max, within and timeouts; 0 is 1.
	TimeScale float64
	// Stall replaces the stall_timeout of every scenario; 0 leaves it.
	Stall time.Duration
	// NoThresholds checks none.
	NoThresholds bool
	// Baseline is what an earlier run has found, under a name; limits may refer to it, and reports show both.
	Baseline     record.Baseline
	BaselineName string
	// GuestCache is the directory of compiled guests; empty for the user's own.
	GuestCache string
	// Warn is told what the user should know and no case has to do with; nil is nobody.
	Warn func(text string)
}

// Run runs the selected cases of checked scenarios and returns the totals.  When ctx ends, the running cases
// are cut short, their `finally` still runs, and the rest is not run.  The error is that of an output which
// could not be written, or of a case pattern.
func Run(ctx context.Context, scenarios []Scenario, config RunConfig) (record.Totals, error) {
	begin := time.Now()
	cases, err := Select(scenarios, config.Selection)
	if err != nil {
		return record.Totals{}, err
	}
	guests := newGuestRuntime(config)
	j := &jobs{
		config: config, stream: record.NewStream(config.Consumers...), guests: guests,
		cases: cases, rounds: max(1, config.Repeat),
	}
	j.stream.Write(&record.Record{Kind: record.RunStart, Run: describe(cases, config)})
	var workers sync.WaitGroup
	for range max(1, min(config.Jobs, len(cases))) {
		workers.Go(func() { j.work(ctx) })
	}
	workers.Wait()
	totals := j.totals
	if ctx.Err() != nil {
		totals.TimedOut = errors.Is(ctx.Err(), context.DeadlineExceeded)
		totals.Interrupted = !totals.TimedOut
	}
	totals.NotRun = j.left()
	totals.Took = time.Since(begin)
	closing := guests.Close()
	j.stream.Write(&record.Record{Kind: record.RunEnd, Totals: &totals})
	return totals, errors.Join(closing, j.stream.Err())
}

func describe(cases []Selected, config RunConfig) *record.Run {
	name := config.ProviderName
	if name == "" {
		name = config.Provider.Name()
	}
	rounds := max(1, config.Repeat)
	description := &record.Run{Provider: name, Cases: len(cases) * rounds, UntilFail: config.UntilFail,
		Rerun: config.Rerun, Seed: config.Seed, Environment: config.Environment,
		Baseline: config.BaselineName}
	if config.Seed == nil && config.Drawn != 0 {
		description.Seed = &config.Drawn
	}
	if description.Seed != nil && description.Rerun != "" {
		description.Rerun = exec.WithSeed(description.Rerun, *description.Seed)
	}
	for _, each := range cases {
		files := description.Files
		if len(files) == 0 || files[len(files)-1] != each.Scenario.Path {
			description.Files = append(files, each.Scenario.Path)
		}
	}
	return description
}
