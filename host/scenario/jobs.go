package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"rdmarun/host/record"
	"rdmarun/host/scenario/exec"
	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// jobs hands the cases of a run to workers.
type jobs struct {
	config RunConfig
	stream *record.Stream
	guests *guestRuntime
	cases  []Selected
	rounds int

	mu     sync.Mutex      // of what follows
	noted  map[string]bool // devices of which there is a record
	next   int             // cases handed out so far, over all rounds
	failed bool
	totals record.Totals
}

// take hands out the next case.
func (j *jobs) take(ctx context.Context) (each Selected, round int, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.cases) == 0 || ctx.Err() != nil || j.failed && (j.config.FailFast || j.config.UntilFail) {
		return Selected{}, 0, false
	}
	round = j.next / len(j.cases)
	if round >= j.rounds && !j.config.UntilFail {
		return Selected{}, 0, false
	}
	each = j.cases[j.next%len(j.cases)]
	j.next++
	return each, round, true
}

// left is how many cases were not handed out.
func (j *jobs) left() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return max(0, len(j.cases)*j.rounds-j.next)
}

func (j *jobs) work(ctx context.Context) {
	for {
		each, round, ok := j.take(ctx)
		if !ok {
			return
		}
		result := j.attempts(ctx, each, round)
		j.mu.Lock()
		j.totals.Count(&result)
		j.failed = j.failed || !result.Status.OK()
		j.mu.Unlock()
	}
}

// attempts runs a case until it passes or may not be tried again.
func (j *jobs) attempts(ctx context.Context, each Selected, round int) record.Result {
	for attempt := 0; ; attempt++ {
		relay := &relay{
			stream: j.stream, hold: j.config.Jobs > 1, strict: j.config.Strict,
			number:  round*(j.config.Retries+1) + attempt,
			attempt: attempt + 1, last: attempt >= j.config.Retries,
			earlier: j.config.Baseline[each.Case.ID], devices: j,
		}
		// Rounds and attempts draw other numbers, or a repeated case would repeat its luck.
		j.one(ctx, each, j.seed(each, relay.number), relay)
		if !relay.retry {
			j.mu.Lock()
			j.totals.Thresholds += relay.unmet
			j.mu.Unlock()
			return relay.result
		}
	}
}

// seed is that of one attempt of a case; nil for the file's own, and where there is none.
func (j *jobs) seed(each Selected, number int) *uint64 {
	seed := j.config.Drawn
	switch {
	case j.config.Seed != nil:
		seed = *j.config.Seed
	case j.config.Drawn == 0, each.Scenario.Program.Soft.Seeded:
		return nil
	}
	seed += uint64(number)
	return &seed
}

// one runs a case once.  Its result is in the records.
func (j *jobs) one(ctx context.Context, each Selected, seed *uint64, relay *relay) {
	stream := j.stream.Branch(relay)
	config := exec.Config{
		Stream: stream, Rerun: j.config.Rerun, Seed: seed, Baseline: relay.earlier,
		TimeScale: j.config.TimeScale, Stall: j.config.Stall, NoThresholds: j.config.NoThresholds,
	}
	if missing := each.Scenario.Program.Missing; len(missing) > 0 {
		exec.Skip(config, each.Scenario.Program, each.Case, MissingReason(missing))
		return
	}
	config.Provider = j.config.Provider
	if config.Provider == nil {
		provider, err := j.config.Open(each, seed)
		if err != nil {
			writeError(stream, each, err)
			return
		}
		config.Provider = provider
		defer closeProvider(provider, stream, each)
	}
	relay.provider = config.Provider
	config.Guests = func() (testbed.GuestStarter, error) {
		return &guestStarter{runtime: j.guests, provider: config.Provider}, nil
	}
	exec.Case(ctx, config, each.Scenario.Program, placed(each.Case, j.config.Places))
}

// MissingReason is why a case is skipped whose parameters have no value.
func MissingReason(missing []string) string {
	return "it needs -p " + strings.Join(missing, "=.. -p ") + "=.."
}

// closeProvider closes the provider of one case.  What still lives then is a leak that the case has
// reported; anything else is worth a line.
func closeProvider(provider *rdmacore.Provider, stream *record.Stream, each Selected) {
	err := provider.Close()
	if err == nil || provider.Live().Total() > 0 {
		return
	}
	stream.Write(&record.Record{
		Kind: record.Output, File: each.Scenario.Path, Case: each.Case.ID,
		Line: &record.Line{Text: fmt.Sprint(errors.Unwrap(err))},
	})
}

// writeError is the end of a case whose provider could not be opened.
func writeError(stream *record.Stream, each Selected, err error) {
	stream.Write(&record.Record{
		Kind: record.CaseEnd, File: each.Scenario.Path, Case: each.Case.ID,
		Result: &record.Result{Name: each.Case.Name, Status: record.Errored, Reason: err.Error()},
	})
}
