package scenario

import (
	"context"
	"errors"
	"path"
	"strings"
	"time"

	"rdmarun/host/scenario/lab"
	"rdmarun/host/scenario/plan"
	"rdmarun/host/scenario/record"
	"rdmarun/host/scenario/run"
	"rdmarun/rdmacore"
)

// RunConfig says how to run scenarios.
type RunConfig struct {
	Provider *rdmacore.Provider
	// IDs selects cases by patterns of their ids, as in path.Match but with * also for slashes; empty
	// selects all.
	IDs       []string
	Consumers []record.Consumer
	// Rerun is the command that runs the same again, without files: "rdmarun run -P verbs".
	Rerun string
	// GuestCache is the directory of compiled guests; empty for the user's own.
	GuestCache string
}

// selected is a case to run.
type selected struct {
	scenario Scenario
	testCase *plan.Case
}

// Run runs the cases of checked scenarios one after another and returns the totals.  When ctx ends, the
// running case is cut short, its `finally` still runs, and the rest is not run.  The error is that of an
// output which could not be written, or of a case pattern.
func Run(ctx context.Context, scenarios []Scenario, config RunConfig) (record.Totals, error) {
	begin := time.Now()
	cases, err := selectCases(scenarios, config.IDs)
	if err != nil {
		return record.Totals{}, err
	}
	stream := record.NewStream(config.Consumers...)
	guests := newGuestStarter(config.Provider, config.GuestCache)
	runConfig := run.Config{
		Provider: config.Provider, Stream: stream, Rerun: config.Rerun,
		Guests: func() (lab.GuestStarter, error) { return guests, nil },
	}
	var totals record.Totals
	stream.Write(&record.Record{Kind: record.RunStart, Run: describe(cases, config)})
	for i, each := range cases {
		if ctx.Err() != nil {
			totals.NotRun = len(cases) - i
			break
		}
		count(&totals, one(ctx, runConfig, each))
	}
	if ctx.Err() != nil {
		totals.TimedOut = errors.Is(ctx.Err(), context.DeadlineExceeded)
		totals.Interrupted = !totals.TimedOut
	}
	totals.Took = time.Since(begin)
	closing := guests.Close()
	stream.Write(&record.Record{Kind: record.RunEnd, Totals: &totals})
	return totals, errors.Join(closing, stream.Err())
}

func one(ctx context.Context, config run.Config, each selected) record.Result {
	if missing := each.scenario.Program.Missing; len(missing) > 0 {
		reason := "it needs -p " + strings.Join(missing, "=.. -p ") + "=.."
		return run.Skip(config, each.scenario.Program, each.testCase, reason)
	}
	return run.Case(ctx, config, each.scenario.Program, each.testCase)
}

func describe(cases []selected, config RunConfig) *record.Run {
	description := &record.Run{Provider: config.Provider.Name(), Cases: len(cases), Rerun: config.Rerun}
	for _, each := range cases {
		files := description.Files
		if len(files) == 0 || files[len(files)-1] != each.scenario.Path {
			description.Files = append(files, each.scenario.Path)
		}
	}
	return description
}

func selectCases(scenarios []Scenario, ids []string) ([]selected, error) {
	var cases []selected
	for _, s := range scenarios {
		for _, c := range s.Program.Cases {
			wanted, err := matches(c.ID, ids)
			if err != nil {
				return nil, err
			}
			if wanted {
				cases = append(cases, selected{s, c})
			}
		}
	}
	return cases, nil
}

// matches compares an id with patterns.  A slash is no border in an id, so it is hidden from path.Match.
func matches(id string, patterns []string) (bool, error) {
	hide := strings.NewReplacer("/", "\x00")
	for _, pattern := range patterns {
		if pattern == id {
			return true, nil
		}
		ok, err := path.Match(hide.Replace(pattern), hide.Replace(id))
		if ok || err != nil {
			return ok, err
		}
	}
	return len(patterns) == 0, nil
}

func count(totals *record.Totals, result record.Result) {
	switch result.Status {
	case record.Passed:
		totals.Passed++
	case record.Skipped:
		totals.Skipped++
	case record.Errored:
		totals.Errors++
	case record.Broken:
		totals.Failed++
		totals.Bug = true
	default:
		totals.Failed++
	}
}
