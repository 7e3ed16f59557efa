package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"rdmarun/host/guest"
	"rdmarun/host/guest/trace"
	"rdmarun/host/guest/wasm"
	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/environment"
	"rdmarun/host/scenario/exec"
	"rdmarun/host/scenario/shell"
	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// RunConfig describes a run of scenarios.
type RunConfig struct {
	// Provider is what roles are on that choose no other one, in all cases, one after another; nil: each case has its
	// own soft.
	Provider *rdmacore.Provider
	// Open opens soft for one case, which is closed after it; nil: OpenSoft. For the first attempt of a case the
	// seed is Seed, or the drawn one. It is another number for each further attempt, and nil when there is none.
	Open func(Opening) (*rdmacore.Provider, error)
	// Capture is where soft writes what it sends; nil: nowhere.
	Capture *rdmacore.Capture
	// OnFailure keeps what soft sends around the failures of cases; may be nil.  It takes the place of Capture.
	OnFailure FailureCapture
	// ProviderName is the name of the provider of roles that choose none, which records have; empty: that of
	// Provider, or soft.
	ProviderName string
	// HostProviders are those of the hosts of a lab, by name, which records have then instead.
	HostProviders []string
	// FilesChoose lets the provider that a file names come before that.
	FilesChoose bool
	// Link is one of rdmacore.Links for soft, where files choose none; empty: the first of them.
	Link string
	// Legal has soft make legal choices, where files say nothing of them.
	Legal rdmacore.Legal
	// Fabric is what soft's providers are of on the link udp, together with those of other programs; empty: their own.
	Fabric string
	// SharedFabric connects them to programs of every user of this host that share the fabric; else to those of this
	// user and root.
	SharedFabric bool
	Selection    Selection
	// Participant is what this process plays of the run, together with others that it has met; nil: all.
	Participant *Participant
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
	// Seed is the seed of soft's random numbers, in place of those in files.
	Seed *uint64
	// Drawn is the seed if neither Seed nor a file has one, so that a failure can be repeated. With 0 each
	// provider draws its own, which is not reported.
	Drawn     uint64
	Consumers []record.Consumer
	// Rerun is the command that runs the same again, without parameters and files: "rdmarun run -P verbs".
	Rerun string
	// RerunWhole means that Rerun needs only the seed: what runs is not a file that the user has.
	RerunWhole bool
	// Environment is noted in the records: facts of where the run takes place.
	Environment map[string]string
	// Places are where roles run, by their names; that of "" is for roles without one of their own.  They
	// take precedence over the scenario.
	Places map[string]Place
	// TimeScale stretches limits of wall-clock time, for slow machines: took.max, within and timeouts; 0 is 1.
	TimeScale float64
	// Stall replaces the stall_timeout of every scenario; 0 leaves it.
	Stall time.Duration
	// Interval is how often a measurement writes what it does, as records of the kind Measuring; 0: when it has ended.
	Interval time.Duration
	// NoThresholds checks none.
	NoThresholds bool
	// Baseline is what an earlier run has found, under a name; limits may refer to it, and reports show both.
	Baseline     record.Baseline
	BaselineName string
	// GuestCache is the directory of compiled guests; empty for the user's own.
	GuestCache string
	// GuestCompiler compiles guests that are not there; nil compiles them in this process (guest.RuntimeConfig).
	GuestCompiler []string
	// ProgramEnvironment is that of native programs that play roles. SoftLibrary is the library that is preloaded
	// into those on soft, "" for the one in the folder of this executable.
	ProgramEnvironment map[string]string
	SoftLibrary        string
	// AllowProgram is asked whether a native program, by its absolute path, may be run with variables of these names;
	// nil allows all.
	AllowProgram func(path string, variables []string) error
	// Confine restricts the process, before the first guest starts; nil does not.
	Confine func() error
	// Allow is asked whether this host may be used for something, before each provider is opened and before each step;
	// nil allows all.  Its error ends the case.
	Allow func(Need) error
	// GuestTrace shows the calls of guests; nil shows none.
	GuestTrace *trace.Tracer
	// Warn reports what the user should know and is not of a case; may be nil.
	Warn func(text string)
}

// Run runs the selected cases of checked scenarios and returns the totals.  When ctx ends, the running cases
// are cut short, their `finally` still runs, and the rest is not run.  The error is that of an output which
// could not be written, or of a case pattern.
func Run(ctx context.Context, scenarios []Scenario, config RunConfig) (record.Totals, error) {
	begin := time.Now()
	if config.ProviderName == "" {
		config.ProviderName = rdmacore.Soft
		if config.Provider != nil {
			config.ProviderName = config.Provider.Name()
		}
	}
	cases, err := Select(scenarios, config.Selection)
	if err != nil {
		return record.Totals{}, err
	}
	for i := range cases {
		cases[i] = config.Participant.here(cases[i])
	}
	newStream := record.NewStream
	if config.Participant != nil && config.Participant.Controller != nil {
		newStream = record.NewQueuedStream // no host waits for an output of this one
	}
	j := &jobs{
		config: config, stream: newStream(config.Consumers...),
		guests: &guests{
			confine: config.Confine,
			config: guest.RuntimeConfig{
				CacheDir: config.GuestCache, Compiler: config.GuestCompiler, Warn: config.Warn,
				Trace: config.GuestTrace,
			},
		},
		cases: cases, families: families(cases), rounds: max(1, config.Repeat), noted: make(map[string]bool),
	}
	j.on = &providers{config: &j.config}
	if !slices.ContainsFunc(cases, j.on.onSoft) {
		j.config.Drawn = 0 // nothing draws from it
	}
	j.stream.Write(&record.Record{Kind: record.RunStart, Run: describe(cases, j.config)})
	var workers sync.WaitGroup
	switch participant := config.Participant; {
	case participant != nil && participant.ControllerName != "":
		j.follow(ctx)
	default:
		for range max(1, min(config.Jobs, len(j.families))) {
			workers.Go(func() { j.work(ctx) })
		}
		workers.Wait()
	}
	if participant := config.Participant; participant != nil && participant.Controller != nil {
		_ = participant.meeting.Broadcast(caseStartKey(j.runs+1), caseStart{}) // a process that is gone needs no end
	}
	totals := j.totals
	if ctx.Err() != nil {
		totals.TimedOut = errors.Is(ctx.Err(), context.DeadlineExceeded)
		totals.Interrupted = !totals.TimedOut
	}
	totals.NotRun = max(0, len(j.cases)*j.rounds-j.begun)
	totals.Took = time.Since(begin)
	closing := errors.Join(j.guests.Close(), j.on.Close())
	j.stream.Write(&record.Record{Kind: record.RunEnd, Totals: &totals})
	j.stream.Close()
	return totals, errors.Join(closing, j.stream.Err())
}

func describe(cases []Selected, config RunConfig) *record.Run {
	description := &record.Run{
		Provider: cmp.Or(strings.Join(config.HostProviders, ", "), config.ProviderName),
		Cases:    len(cases) * max(1, config.Repeat), UntilFail: config.UntilFail,
		Rerun: config.Rerun, Seed: config.Seed, Environment: config.Environment, Baseline: config.BaselineName,
	}
	if description.Provider == "" {
		description.Provider = config.Provider.Name()
	}
	if config.Seed == nil && config.Drawn != 0 {
		description.Seed = &config.Drawn
	}
	var given []string
	for _, each := range cases {
		description.Files = append(description.Files, each.Scenario.Path)
		given = append(given, each.Scenario.Compiled.Given...)
	}
	description.Files = slices.Compact(description.Files)
	if description.Rerun != "" {
		slices.Sort(given)
		description.Rerun = shell.Command(description.Rerun, slices.Compact(given), description.Seed)
	}
	return description
}

// jobs hands the cases of a run to workers.
type jobs struct {
	config RunConfig
	stream *record.Stream
	guests *guests
	on     *providers
	cases  []Selected
	// families are the cases as workers take them: those that share fixtures together.
	families [][]Selected
	rounds   int
	runs     int // of cases, where several processes play them

	mu     sync.Mutex      // of what follows
	noted  map[string]bool // devices of which there is a record
	next   int             // families handed out so far, over all rounds
	begun  int             // cases that were begun
	failed bool
	totals record.Totals
}

// take hands out the next cases.
func (j *jobs) take(ctx context.Context) (family []Selected, round int, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.families) == 0 || j.over(ctx) {
		return nil, 0, false
	}
	round = j.next / len(j.families)
	if round >= j.rounds && !j.config.UntilFail {
		return nil, 0, false
	}
	family = j.families[j.next%len(j.families)]
	j.next++
	return family, round, true
}

// over reports whether no further case may begin.  The lock is held.
func (j *jobs) over(ctx context.Context) bool {
	return ctx.Err() != nil || j.failed && (j.config.FailFast || j.config.UntilFail)
}

func (j *jobs) work(ctx context.Context) {
	for {
		family, round, ok := j.take(ctx)
		if !ok {
			return
		}
		j.family(ctx, family, round)
	}
}

// attempts runs a case until it passes or may not be tried again.
func (j *jobs) attempts(ctx context.Context, each Selected, round int, share *share) record.Result {
	for attempt := 0; ; attempt++ {
		relay := &relay{
			jobs: j, hold: j.config.Jobs > 1, number: round*(j.config.Retries+1) + attempt, attempt: attempt + 1,
			earlier: j.config.Baseline[each.Case.ID],
		}
		j.one(ctx, each, relay, nil, share)
		if !relay.retry {
			j.mu.Lock()
			j.totals.Thresholds += relay.unmet
			j.mu.Unlock()
			return relay.result
		}
	}
}

// seed is that of one attempt of a case; nil for the file's own, and where there is none.  Each attempt draws other
// numbers, or a repeated case would repeat its luck.
func (j *jobs) seed(each Selected, number int) *uint64 {
	seed := j.config.Drawn
	switch {
	case !j.on.onSoft(each):
		return nil
	case j.config.Seed != nil:
		seed = *j.config.Seed
	case j.config.Drawn == 0, each.Scenario.Compiled.Soft.Seeded:
		return nil
	}
	seed += uint64(number)
	return &seed
}

// one runs a case once, on what it shares, if it does.  Its result is in the records.
func (j *jobs) one(ctx context.Context, each Selected, relay *relay, with []string, share *share) {
	scenario, seed := each.Scenario.Compiled, j.seed(each, relay.number)
	config := exec.Config{
		Guests: j.guests,
		Programs: testbed.ProgramSettings{
			Environment: j.config.ProgramEnvironment, Library: j.config.SoftLibrary, Allow: j.config.AllowProgram,
		},
		Stream: j.stream.Branch(relay), Rerun: j.config.rerun(each, seed, nil), Seed: seed,
		Baseline: relay.earlier, TimeScale: j.config.TimeScale, Stall: j.config.Stall, Interval: j.config.Interval,
		NoThresholds: j.config.NoThresholds,
	}
	if allow := j.config.Allow; allow != nil {
		config.Allow = func(what, why string) error { return allow(Need{what, why}) }
	}
	relay.rerun = config.Rerun
	if participant := j.config.Participant; participant != nil {
		if participant.ControllerName == "" {
			j.runs++ // by one worker
		}
		if participant.Controller != nil {
			var status record.Status
			var reason string
			participant.Controller.begin(config.Stream, each) // before the others start the case, and report on it
			defer participant.Controller.begin(nil, Selected{})
			if with, status, reason = participant.announce(each, j.runs, relay.number); reason != "" {
				j.runs-- // it was no run
				exec.End(config.Stream, scenario, each.Case, status, reason)
				return
			}
		}
		participant.meets(&config, each, j.runs, with)
	}
	if len(scenario.Missing) > 0 {
		exec.Decline(config, scenario, each.Case, record.Skipped, MissingReason(scenario.Missing))
		return
	}
	recording, err := j.record(each, relay, with)
	if err != nil {
		exec.Decline(config, scenario, each.Case, record.Errored, err.Error())
		return
	}
	defer relay.complete()
	on, close, err := share.open(func() (testbed.Providers, func() []closed, error) {
		return j.on.open(each, seed, recording)
	})
	var unusable *unusableError
	switch {
	case errors.As(err, &unusable):
		exec.Decline(config, scenario, each.Case, record.Skipped, unusable.reason)
		return
	case err != nil:
		exec.Decline(config, scenario, each.Case, record.Errored, err.Error())
		return
	}
	config.Session, config.Last = share.session(scenario)
	if config.Session.Open() {
		config.Rerun = j.config.rerun(each, seed, share.behind)
		relay.rerun = config.Rerun
	}
	defer func() {
		if !config.Session.Open() {
			noteClosing(close(), config.Stream, each)
		}
	}()
	config.Providers, relay.providers = on, on
	exec.Case(ctx, config, scenario, j.config.placed(each, j.on.configs(each)))
}

// rerun is the command that runs a case alone, with the parameters that its file has: empty where the run lacks them.
// A case that takes over what the cases of the files in behind have shared runs behind them again, in the same order.
func (c *RunConfig) rerun(each Selected, seed *uint64, behind []*compile.Scenario) string {
	switch {
	case c.Rerun == "":
		return ""
	case c.RerunWhole:
		return shell.Command(c.Rerun, nil, seed)
	case len(behind) > 0:
		var given, files []string
		for _, file := range behind {
			given, files = append(given, file.Given...), append(files, shell.Word(file.File))
		}
		slices.Sort(given)
		command := shell.Command(c.Rerun, slices.Compact(given), seed)
		if c.Selection.Shuffle != nil {
			command += fmt.Sprintf(" --shuffle=%d", *c.Selection.Shuffle)
		}
		return command + " " + strings.Join(files, " ")
	}
	scenario := each.Scenario.Compiled
	command := shell.Command(c.Rerun, scenario.Given, seed) + " " + shell.Word(scenario.File)
	if each.Case.ID != scenario.File {
		command += " --id " + shell.Word(each.Case.ID)
	}
	return command
}

// MissingReason is why a case is skipped when parameters have no value.
func MissingReason(missing []string) string {
	return "it needs -p " + strings.Join(missing, "=.. -p ") + "=.."
}

// noteClosing notes the errors that providers of one case returned when they were closed.  Objects that still live
// then are a leak that the case has reported; any other error gets a line.
func noteClosing(ends []closed, stream *record.Stream, each Selected) {
	for _, end := range ends {
		if end.err == nil || end.provider.Live().Total() > 0 {
			continue
		}
		stream.Write(&record.Record{
			Kind: record.Output, File: each.Scenario.Path, Case: each.Case.ID,
			Line: &record.Line{Text: fmt.Sprint(errors.Unwrap(end.err))},
		})
	}
}

// relay passes the records of one attempt of a case to the stream of the run. It decides whether the attempt counts,
// and whether a skip does.
type relay struct {
	jobs *jobs
	// hold keeps records until the case ends, so that those of cases that run at once do not mix.
	hold bool
	held []*record.Record
	// early are records of other processes, which may begin the case sooner; begun means that it has begun here.
	early []*record.Record
	begun bool
	// number distinguishes the runs of one case, from 0; attempt counts those of one round, from 1.
	number, attempt int
	// providers are the attempt's, once they are open.
	providers testbed.Providers
	// earlier is what the baseline has of the case; nil: nothing.
	earlier *record.Earlier

	// recording captures the attempt; it may be nil.  ended is its end until that is over.  run is its number among
	// all runs of cases, with are the processes that this one leads through it.
	recording Recording
	ended     *record.Record
	run       int
	with      []string

	rerun  string // the command that runs the attempt again
	result record.Result
	retry  bool
	unmet  int // thresholds that did not hold
}

// Wants implements record.Consumer.
func (r *relay) Wants(kind record.Kind) bool {
	return r.jobs.stream.Wants(kind) || kind == record.CaseEnd || kind == record.Checked ||
		kind == record.StepEnd && r.recording != nil ||
		kind == record.CaseStart && r.jobs.stream.Wants(record.DeviceUsed)
}

// Record implements record.Consumer.
func (r *relay) Record(each *record.Record) error {
	kept := *each
	kept.Attempt = r.number
	if each.Threshold != nil && !each.Threshold.OK {
		r.unmet++
	}
	if each.Host != "" && !r.begun && len(r.early) < maxEarly {
		r.early = append(r.early, &kept)
		return nil
	}
	switch each.Kind {
	case record.CaseStart:
		r.jobs.noteDevices(r.providers, each.Start.Roles)
		if r.hold {
			r.jobs.stream.Announce(&kept)
		}
		r.pass(&kept)
		r.passBaseline(&kept)
		r.begin()
		return nil
	case record.CaseEnd:
		r.begin()
		r.passLeftOut(&kept)
		r.end(&kept)
		if r.recording != nil {
			r.ended = &kept
			return nil
		}
	case record.StepEnd:
		r.failedAt(each)
		if r.hold {
			step := *each.Step
			kept.Step = &step
		}
	}
	r.pass(&kept)
	if each.Kind == record.CaseEnd {
		r.release()
	}
	return nil
}

// release passes on what is held.
func (r *relay) release() {
	if r.hold {
		r.jobs.stream.Forward(r.held...)
		r.hold, r.held = false, nil
	}
}

// maxEarly bounds how many records are held for the beginning of a case; those beyond come before it.
const maxEarly = 4096

// begin passes on what has come early.
func (r *relay) begin() {
	for _, each := range r.early {
		r.pass(each)
	}
	r.early, r.begun = nil, true
}

// pass passes a record on, or holds it.
func (r *relay) pass(each *record.Record) {
	if r.hold {
		r.held = append(r.held, each)
	} else {
		r.jobs.stream.Forward(each)
	}
}

// passBaseline passes on what the baseline has measured, behind the beginning of the case.
func (r *relay) passBaseline(start *record.Record) {
	if r.earlier == nil || !r.jobs.stream.Wants(record.Before) {
		return
	}
	for i := range r.earlier.Measures {
		each := *start
		each.Kind, each.Start, each.Measure = record.Before, nil, &r.earlier.Measures[i]
		r.pass(&each)
	}
}

// passLeftOut reports the processes with records of the case that are left out.
func (r *relay) passLeftOut(end *record.Record) {
	participant := r.jobs.config.Participant
	if participant == nil || participant.Controller == nil {
		return
	}
	sentences := participant.Controller.leftOut()
	for _, from := range slices.Sorted(maps.Keys(sentences)) {
		each := *end
		each.Kind, each.Result, each.Host, each.Line = record.Output, nil, from, &record.Line{Text: sentences[from]}
		r.pass(&each)
	}
}

// end decides what the end of the attempt means.
func (r *relay) end(each *record.Record) {
	result, config := *each.Result, &r.jobs.config
	// An error of the surroundings and an end from outside would only come again. A measurement that is repeated
	// until it is fast enough is not a measurement.
	r.retry = result.Status == record.Failed && r.attempt <= config.Retries && !result.FailedByThreshold()
	if config.Strict && result.Status == record.Skipped {
		result.Status = record.Failed
		result.Failures = append(result.Failures, record.Failure{
			Kind: record.KindSkipped, File: each.File, What: "skipped, and --strict allows no skip",
			Got: result.Reason, Rerun: r.rerun,
		})
	}
	if r.attempt > 1 || r.retry {
		result.Attempts = r.attempt
	}
	if result.Status == record.Passed && r.attempt > 1 {
		result.Reason = record.FlakyReason
	}
	if r.retry {
		each.Kind = record.CaseRetry
		result.Reason = "it is tried again"
	}
	each.Result = &result
	r.result = result
}

// noteDevices writes a record of each device of providers that roles run on, unless there is one.  It leaves out what
// cannot be queried of a device: the case that needs it reports that.
func (j *jobs) noteDevices(on testbed.Providers, roles []record.RolePlace) {
	if !j.stream.Wants(record.DeviceUsed) || j.config.Participant != nil && j.config.Participant.Controller != nil {
		return // its own providers nothing is on
	}
	for _, role := range roles {
		j.mu.Lock()
		noted := j.noted[role.Device]
		j.noted[role.Device] = true
		j.mu.Unlock()
		if noted {
			continue
		}
		if device, err := testbed.Device(on.Of(role.Role), role.Device); err == nil {
			described, _ := environment.Device(os.DirFS("/"), device)
			j.stream.Write(&record.Record{Kind: record.DeviceUsed, Device: &described})
		}
	}
}

// guests starts the guests of all cases of a run with one runtime.  It is made when the first guest starts: most
// scenarios have none.
type guests struct {
	config  guest.RuntimeConfig
	confine func() error // before the first guest; nil: nothing
	once    sync.Once
	runtime *guest.Runtime
	err     error
}

// Close ends the runtime once every guest has ended.
func (g *guests) Close() error {
	g.once.Do(func() { g.err = errors.New("closed") })
	if g.runtime == nil {
		return nil
	}
	return g.runtime.Close(context.Background())
}

// Start compiles the module, from the cache if it can, and starts it.
func (g *guests) Start(ctx context.Context, code guest.Code, config guest.Config) (testbed.RunningGuest, error) {
	g.once.Do(func() {
		g.runtime, g.err = guest.New(context.WithoutCancel(ctx), g.config)
		if g.err == nil && g.confine != nil {
			g.err = g.confine()
		}
	})
	if g.err != nil {
		return nil, &testbed.EnvironmentError{What: "the guest runtime", Err: g.err}
	}
	compiling, began, cancel := config.Limits.Compiling(ctx)
	defer cancel()
	module, err := g.runtime.CompileCode(compiling, code)
	switch {
	case testbed.OutOfFiles(err):
		return nil, &testbed.EnvironmentError{What: "the guest's module", Err: err}
	case errors.Is(err, fs.ErrNotExist):
		return nil, &testbed.Failure{
			What: "the guest's module cannot be used", Got: err.Error(),
			Hint: "`make guests` builds the guests that come with rdmarun",
		}
	case err != nil:
		return nil, &testbed.Failure{What: "the guest's module cannot be used", Got: err.Error()}
	}
	config.Began = began
	started, err := g.runtime.Start(ctx, module, config)
	if err != nil {
		return nil, &testbed.Failure{What: "the guest cannot be started", Got: err.Error()}
	}
	return started, nil
}

// inspectModule lists the functions of a guest's module.
func inspectModule(path string) (map[string]compile.Signature, error) {
	facts, err := guest.Inspect(path)
	if err != nil {
		return nil, err
	}
	functions := make(map[string]compile.Signature)
	for _, export := range facts.Exports {
		if export.Kind == wasm.KindFunction {
			functions[export.Name] = compile.Signature(export.Signature)
		}
	}
	return functions, nil
}
