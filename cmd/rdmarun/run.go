package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rdmarun/host/guest"
	"rdmarun/host/output/terminal"
	"rdmarun/host/program"
	"rdmarun/host/record"
	"rdmarun/host/sandbox"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/shell"
	"rdmarun/rdmacore"
)

const runLong = `Run scenarios: files, and all scenarios below directories (default: ./scenarios).

Everything is checked before anything runs; see "rdmarun validate". A case fails when an
expectation is not met, when it leaves unmatched completions or events, and when
something cannot be freed.

Parameters of a scenario are set by -p NAME=VALUE, in a file (--params), or in the
environment as RDMARUN_PARAM_NAME. A case without a value for a parameter is skipped. If
its file was named on the command line, that is an error instead.

The output is a line for each case as it ends, then the failures in full, then the
counts. A failure has the steps that led to it and the command that runs it again.

The first SIGINT or SIGTERM ends the running case, runs its "finally" steps and
frees everything; a second one ends rdmarun at once.`

const runExample = `  rdmarun run scenarios/rping.yaml
  rdmarun run scenarios/rping.yaml -p count=100 -p size=4KiB
  rdmarun run --provider verbs -d server=mlx5_0:1 -d client=mlx5_1 scenarios/rping.yaml -v
  rdmarun run -t 'smoke && !slow' -j 4 --retries 1
  rdmarun run -k 'rping and not tcp' -x
  rdmarun run --last-failed
  rdmarun run scenarios/interop/rping-client.yaml -P verbs -p server=192.0.2.1
  rdmarun run --role server scenarios/rping.yaml                           # in one terminal,
  rdmarun run --role client --peer server=127.0.0.1 scenarios/rping.yaml   # and in another
  rdmarun run --lab lab.yaml scenarios/rping.yaml
  rdmarun run --nats nats://lab.example --place server=a,client=b scenarios/rping.yaml`

func newRunCommand(a *app) *cobra.Command {
	flags := newRunFlags()
	command := &cobra.Command{
		Use:     "run [FILE|DIRECTORY...]",
		Short:   "Run scenarios",
		Long:    runLong,
		Example: runExample,
		RunE: func(command *cobra.Command, args []string) error {
			return runScenarios(command, a, &flags, args)
		},
		ValidArgsFunction: completeScenarios,
	}
	flags.register(a, command)
	groupFlags(command, runGroups)
	return command
}

func runScenarios(command *cobra.Command, a *app, flags *runFlags, args []string) error {
	ctx := command.Context()
	defer flags.lab.end()
	config, err := flags.begin(command, a)
	if err != nil {
		return err
	}
	if args, err = flags.selection.paths(a, args); err != nil {
		return err
	}
	checked, err := a.checkScenarios(ctx, args, &flags.params, flags.color.style(a, a.stderr))
	if err != nil {
		return err
	}
	if err := flags.enter(a, command, args, checked); err != nil {
		return err
	}
	return runChecked(ctx, a, flags, config, checked)
}

// runChecked runs scenarios in which nothing is wrong.
func runChecked(
	ctx context.Context, a *app, flags *runFlags, config scenario.RunConfig, checked *scenario.Checked,
) (err error) {
	cases, err := a.selectCases(checked, &config.Selection, flags.allowEmpty)
	if err != nil || len(cases) == 0 {
		return err
	}
	if flags.dryRun {
		return a.printSelected(cases, checked.Files)
	}
	if err := errors.Join(
		missingParams(checked.Scenarios, cases), flags.places.check(cases), flags.checkSoft(&config, cases),
	); err != nil {
		return err
	}
	if flags.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(
			ctx, flags.timeout, fmt.Errorf("the run took longer than --timeout %s", quantity.Time(flags.timeout)),
		)
		defer cancel()
	}
	units, err := flags.reportUnits()
	if err != nil {
		return err
	}
	if !flags.lab.active() {
		closeProvider, failed := a.openProvider(flags.provider, &config)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, closeProvider()) }()
		closeCapture, failed := flags.capture.open(a, &config)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, closeCapture()) }()
	}
	closeTrace, err := flags.trace.open(a, &config.GuestTrace)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeTrace()) }()
	if config.Participant != nil {
		if err := flags.shared.join(ctx, a, &config, cases); err != nil {
			return err
		}
		defer config.Participant.Close()
	}
	baselines, err := flags.baselines.open(a, cases, &config)
	if err != nil {
		return err
	}
	defer baselines.discard()
	outputs, err := flags.out.open(a)
	if err != nil {
		return err
	}
	shown, progress := a.showProgress(outputs.human, flags.quiet, flags.color.style(a, outputs.human))
	outputs.plan.Human = terminal.HumanOptions{
		Style: flags.color.style(a, outputs.human), Width: terminalWidth(outputs.human), Quiet: flags.quiet,
		Steps: flags.verbose >= showSteps, Places: flags.verbose >= showPlaces, Units: units,
	}
	human := terminal.NewHuman(shown, outputs.plan.Human)
	config.Consumers = append(append(config.Consumers, progress.consumer(), human), outputs.consumers()...)
	closeLog, err := flags.log.open(a, flags.verbose >= showSteps, &config)
	if err != nil {
		progress.end()
		return errors.Join(err, outputs.Close())
	}
	config.Environment = a.environment()
	config.Confine = flags.sandbox.confine(a)
	if flags.whole == "" {
		if last := beginLastRun(a, cases); last != nil {
			config.Consumers = append(config.Consumers, last)
		}
	}
	outputs.plan.Log = flags.log.plan()
	endPlan, err := a.prepareForCrash(outputs, &config)
	if err != nil {
		progress.end()
		return errors.Join(err, outputs.Close())
	}
	defer endPlan()
	if flags.lab.active() {
		closeLab, failed := flags.lab.open(ctx, a, flags, &config, cases)
		if failed != nil {
			progress.end()
			return errors.Join(failed, outputs.Close())
		}
		defer func() { err = errors.Join(err, closeLab()) }()
	}
	totals, err := scenario.Run(ctx, checked.Scenarios, config)
	progress.end()
	if err := outputs.finish(totals, errors.Join(err, closeLog())); err != nil {
		return err
	}
	held, err := baselines.finish(a, outputs.human, totals, flags.quiet)
	if err != nil {
		return err
	}
	return reported(runCode(totals, held))
}

// printSelected is --dry-run: what the run would do, without a look at any device.
func (a *app) printSelected(cases []scenario.Selected, files int) error {
	if err := printPlan(a.stdout, describeCases(cases, nil)); err != nil {
		return err
	}
	var limit time.Duration
	for _, each := range cases {
		limit += each.Case.Timeout
	}
	_, err := fmt.Fprintf(
		a.stdout, "%s, %s: nothing was run; at most %s of time limits\n", count(files, "file"),
		count(len(cases), "case"), limit,
	)
	return err
}

// runCode is the exit code of a run; its order is that of "rdmarun help exit-codes".  The code of a signal comes from
// codeOf, which has the signal.
func runCode(t record.Totals, baselineHeld bool) exitCode {
	switch {
	case t.Bug:
		return exitBug
	case t.Interrupted:
		return exitInterrupted
	case t.TimedOut:
		return exitTimeout
	case t.Errors > 0:
		return exitEnvironment
	case t.Failed > t.ByThreshold:
		return exitFailed
	case t.Failed > 0 || !baselineHeld:
		return exitThreshold
	}
	return exitOK
}

// runFlags are the flags of run; perf has some of them.
type runFlags struct {
	whole        string // the command that runs the same again, where there is no file to name; "" where there is
	provider     string
	library      string
	chosen       bool // the provider is the user's choice, and comes before the files'
	places       placeFlags
	shared       participantFlags
	lab          labFlags
	params       paramFlags
	selection    selectionFlags
	timeout      time.Duration
	stall        time.Duration
	timeScale    float64
	jobs         int
	repeat       string
	retries      int
	seed         seedFlag
	seeds        seedsFlag
	legal        legalFlag
	fabric       string
	sharedFabric bool
	link         *formatFlag
	failFast     bool
	strict       bool
	allowEmpty   bool
	noThresholds bool
	dryRun       bool
	verbose      verbosity
	quiet        bool
	units        *formatFlag
	interval     secondsFlag
	log          logFlags
	out          outFlags
	capture      captureFlags
	trace        traceFlags
	baselines    baselineFlags
	sandbox      *sandboxFlag
	color        *choiceFlag
}

// newRunFlags has the defaults of flags that a command may not have.
func newRunFlags() runFlags {
	return runFlags{
		color: newColorFlag(), sandbox: newSandboxFlag(sandbox.Default, sandbox.Strict, sandbox.Off), jobs: 1,
		repeat: once, timeScale: 1,
	}
}

// runGroups are the parts of the list of flags, each with its flags in the order in which they help.
var runGroups = []flagGroup{
	{"Select", []string{"tags", "keyword", "id", "last-failed", "shard", "shuffle", "allow-empty", "dry-run"}},
	{"Target", []string{"param", "params", "provider", "device", "gid", "seed", "seeds", "link", "legal"}},
	{"Several processes", []string{"role", "peer", "meet", "wait", "fabric", "shared", "library"}},
	{"Several hosts", []string{"lab", "place", "nats", "nats-user", "creds", "nkey", "tlsca", "tlscert", "tlskey"}},
	{
		"Output",
		[]string{
			"out", "out-dir", "capture", "capture-on-failure", "capture-snaplen", "trace", "trace-file", "interval",
			"baseline", "save-baseline", "verbose", "quiet", "units", "color", "log-file", "log-format",
		},
	},
	{
		"Limits",
		[]string{
			"timeout", "stall-timeout", "time-scale", "jobs", "repeat", "retries", "fail-fast", "strict",
			"no-thresholds", "sandbox",
		},
	},
}

func (f *runFlags) register(a *app, command *cobra.Command) {
	set := command.Flags()
	f.registerTarget(a, command, "")
	f.registerOutput(command, "q")
	f.capture.registerOnFailure(command)
	f.registerTimeout(command)
	f.params.register(a, command)
	f.selection.register(a, command)
	f.shared.register(command, "")
	f.sandbox.register(command)
	f.registerLab(a, command)
	set.StringVar(
		&f.fabric, "fabric", "",
		"on the link udp, connect to programs of this fabric too (rdmarun exec uses \"default\")",
	)
	set.BoolVar(
		&f.sharedFabric, "shared", false,
		"share --fabric with every user of this host (default: with this user and root)",
	)
	set.StringVar(
		&f.library, "library", "",
		"the library to preload into programs that play roles (default: "+program.Library+" next to rdmarun)",
	)
	set.BoolVar(&f.allowEmpty, "allow-empty", false, "an empty selection is not a failure (otherwise exit code 5)")
	set.BoolVarP(&f.dryRun, "dry-run", "n", false, "show what would run, and run nothing")
	set.IntVarP(&f.jobs, "jobs", "j", f.jobs, "cases at once, each on a provider of its own (soft only)")
	set.StringVar(&f.repeat, "repeat", f.repeat, "run everything N times, or until-fail")
	set.Var(&f.seeds, "seeds", "run everything once with each of these seeds: 1..100")
	completeFlag(command, "seeds", cobra.NoFileCompletions)
	set.IntVar(&f.retries, "retries", 0, "how often to try a failed case again (a pass is then reported as flaky)")
	set.BoolVarP(&f.failFast, "fail-fast", "x", false, "start nothing more after a failure")
	set.BoolVar(&f.strict, "strict", false, "a skipped case is a failure")
	set.BoolVar(&f.noThresholds, "no-thresholds", false, "check no thresholds, on a machine too slow for them")
	set.DurationVar(
		&f.stall, "stall-timeout", 0, "fail a case when no step ends for this time (0: as the scenario says)",
	)
	set.Float64Var(
		&f.timeScale, "time-scale", f.timeScale,
		"multiply took.max, within and timeouts on a slow machine (a virtual clock stays exact)",
	)
}

// registerTarget registers what a run is on.  gid is the letter of --gid, "" for none.
func (f *runFlags) registerTarget(a *app, command *cobra.Command, gid string) {
	registerProvider(command, &f.provider, rdmacore.Soft, providerUsage, autoProvider)
	f.places.register(a, command, gid)
	command.Flags().Var(&f.seed, "seed", "seed of soft's random numbers, to repeat a run")
	f.link = registerLink(command, rdmacore.LinkLocal)
	registerLegal(command, &f.legal)
}

// registerLab registers the hosts of a run.
func (f *runFlags) registerLab(a *app, command *cobra.Command) {
	f.lab.register(command)
	f.lab.ambient = a.env[environmentName("nats")]
}

// registerOutput registers what a run shows and writes.  quiet is the letter of --quiet, "" for none.
func (f *runFlags) registerOutput(command *cobra.Command, quiet string) {
	set := command.Flags()
	set.VarP(
		&f.verbose, "verbose", "v", "show each step as it ends (-vv: also where roles run, and the lines of steps)",
	)
	set.Lookup("verbose").NoOptDefVal = "+1"
	set.BoolVarP(&f.quiet, "quiet", quiet, false, "show failures and counts only")
	f.units = newFormatFlag("iec", "si", "cycles")
	set.Var(f.units, "units", "show sizes in KiB (iec) or kB (si), or measured times in cycles of the processor")
	completeFlag(command, "units", cobra.FixedCompletions(f.units.choices, cobra.ShellCompDirectiveNoFileComp))
	set.VarP(
		&f.interval, "interval", "i",
		"show a running measurement in intervals of this length (in seconds without a unit, 0: results only)",
	)
	completeFlag(command, "interval", cobra.NoFileCompletions)
	f.log.register(command)
	f.out.register(command)
	f.capture.register(command)
	f.trace.register(command)
	f.baselines.register(command)
	f.color.register(command)
}

func (f *runFlags) registerTimeout(command *cobra.Command) {
	command.Flags().DurationVar(&f.timeout, "timeout", 0, "limit of the time for everything (0: none, exit code 124)")
}

// begin checks the flags, makes the runner's configuration of them, and asks the lab for its hosts.  The caller ends
// the lab.
func (f *runFlags) begin(command *cobra.Command, a *app) (scenario.RunConfig, error) {
	f.chosen = command.Flags().Changed("provider")
	f.lab.wait = func() time.Duration { return f.shared.wait }
	participant, err := f.shared.participant(command, f.lab.active())
	if err != nil {
		return scenario.RunConfig{}, err
	}
	config, err := f.config(a)
	if err != nil {
		return config, err
	}
	config.Participant = participant
	switch {
	case command.Flags().Changed("link"):
	case participant != nil:
		config.Link = rdmacore.LinkUDP // what reaches another process
	default:
		config.Link = "" // what the case needs
	}
	if err := errors.Join(f.shared.check(f, &config), f.lab.check(f), f.checkSandbox()); err != nil || !f.lab.active() {
		return config, err
	}
	read, err := f.lab.read(command.Context(), a)
	if err == nil {
		f.params.hosts = read.Count
	}
	return config, err
}

// config checks the flags and makes the runner's configuration of them.
func (f *runFlags) config(a *app) (scenario.RunConfig, error) {
	var err error
	if f.provider, err = a.resolveProvider(f.provider); err != nil {
		return scenario.RunConfig{}, err
	}
	if err := f.applySeeds(); err != nil {
		return scenario.RunConfig{}, err
	}
	config := scenario.RunConfig{
		ProviderName: f.provider, FilesChoose: !f.chosen, Link: f.link.value, Legal: f.legal.Legal, Fabric: f.fabric,
		SharedFabric: f.sharedFabric, Jobs: f.jobs, Retries: f.retries, FailFast: f.failFast, Strict: f.strict,
		Seed: f.seed.value, Rerun: f.rerun(), RerunWhole: f.whole != "", GuestCache: f.sandbox.cache(a),
		GuestCompiler:      guest.OwnCompiler(),
		ProgramEnvironment: a.env, SoftLibrary: f.library,
		Warn:      a.warn,
		TimeScale: f.timeScale, Stall: f.stall, Interval: time.Duration(f.interval),
		NoThresholds: f.noThresholds,
	}
	if f.seed.value == nil && f.legal.Choices != 0 {
		config.Drawn = max(f.legal.Seed, 1) // so that the seed of the choices repeats the run
	} else if f.seed.value == nil {
		config.Drawn = drawSeed()
	}
	if config.Places, err = f.places.read(); err != nil {
		return config, err
	}
	if config.Selection, err = f.selection.selection(a); err != nil {
		return config, err
	}
	repeat, badRepeat := strconv.Atoi(f.repeat)
	switch {
	case f.repeat == "until-fail":
		config.UntilFail = true
	case badRepeat != nil || repeat < 1:
		return config, withHint(
			usageError("--repeat %s: neither a number from 1 nor until-fail", f.repeat),
			diag.DidYouMean(f.repeat, []string{"until-fail"}),
		)
	default:
		config.Repeat = repeat
	}
	return config, errors.Join(f.check(), f.capture.check())
}

// applySeeds makes of --seeds what it means: the first seed, and repetitions, each of which has the next seed.
func (f *runFlags) applySeeds() error {
	switch {
	case f.seeds.first == nil:
		return nil
	case f.seed.value != nil:
		return usageError("--seeds %s: not together with --seed", &f.seeds)
	case f.repeat != once:
		return usageError("--seeds %s: not together with --repeat; each seed runs once", &f.seeds)
	case f.retries > 0:
		return usageError("--seeds %s: not together with --retries; a retry has the seed of the next run", &f.seeds)
	case f.seeds.runs() > maxRuns:
		return usageError("--seeds %s: at most %d seeds", &f.seeds, maxRuns)
	}
	f.seed.value, f.repeat = f.seeds.first, strconv.Itoa(f.seeds.runs())
	return nil
}

// once is the default of --repeat.
const once = "1"

// maxRuns bounds --jobs, --repeat and --retries: more is a typing error.
const maxRuns = 1_000_000

// leastInterval is as often as the figures of a measurement are looked at.
const leastInterval = 50 * time.Millisecond

// check refuses numbers without a meaning.
func (f *runFlags) check() error {
	repeat, _ := strconv.Atoi(f.repeat)
	switch {
	case f.jobs < 1 || f.jobs > maxRuns:
		return usageError("--jobs %d: from 1 to %d", f.jobs, maxRuns)
	case f.retries < 0 || f.retries > maxRuns:
		return usageError("--retries %d: from 0 to %d", f.retries, maxRuns)
	case repeat > maxRuns:
		return withHint(
			usageError("--repeat %d: at most %d", repeat, maxRuns), "--repeat until-fail has no end of its own",
		)
	case f.timeout < 0:
		return usageError("--timeout %s: the time must not be negative (0: no limit)", f.timeout)
	case f.stall < 0:
		return usageError(
			"--stall-timeout %s: the time must not be negative; 0 keeps the scenario's value", f.stall,
		)
	case !(f.timeScale > 0) || math.IsInf(f.timeScale, 0):
		return withHint(
			usageError("--time-scale %g: a number above 0", f.timeScale), "4 lets everything take four times as long",
		)
	case f.jobs > 1 && f.provider != rdmacore.Soft:
		return withHint(usageError("--jobs %d: only provider soft runs several cases at once", f.jobs),
			"cases on a device would disturb each other; leave --jobs out")
	case f.interval < 0 || f.interval > 0 && time.Duration(f.interval) < leastInterval:
		return usageError("--interval %s: 0, or from %s", &f.interval, quantity.Time(leastInterval))
	case f.fabric != "" && rdmacore.CheckFabric(f.fabric) != nil:
		return usageError("--fabric: %w", rdmacore.CheckFabric(f.fabric))
	case f.fabric != "" && f.jobs > 1:
		return withHint(
			usageError("--fabric %s: cases of one fabric run one at a time, since ports are the fabric's", f.fabric),
			"leave --jobs out",
		)
	case f.fabric != "" && f.provider != rdmacore.Soft:
		return usageError("--fabric %s: only programs on soft have fabrics", f.fabric)
	case f.sharedFabric && f.fabric == "":
		return withHint(usageError("--shared: no fabric is named that could be shared"), "add --fabric NAME")
	case f.quiet && f.verbose > 0:
		return usageError("--quiet and --verbose exclude each other")
	}
	return nil
}

// checkSoft refuses what is of soft alone where no role is on it.
func (f *runFlags) checkSoft(config *scenario.RunConfig, cases []scenario.Selected) error {
	switch {
	case config.OnSoft(cases):
		return nil
	case f.seed.value != nil:
		return usageError("--seed: only provider soft draws its numbers from a seed")
	case f.link.value != rdmacore.Links()[0]:
		return usageError("--link: only provider soft has links to choose from")
	case f.legal.Choices != 0:
		return usageError("--legal: only provider soft makes legal choices")
	case f.capture.path != "":
		return errNotCaptured("--capture")
	case f.capture.onFailure != "":
		return errNotCaptured("--capture-on-failure")
	}
	return nil
}

// reportUnits are the units in which people read the run.
func (f *runFlags) reportUnits() (terminal.Units, error) {
	if f.units.value != "cycles" {
		return terminal.Units{SI: f.units.value == "si"}, nil
	}
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return terminal.Units{}, withExit(exitEnvironment, fmt.Errorf("--units cycles: %w", err))
	}
	perNanosecond, err := cyclesPerNanosecond(string(text))
	return terminal.Units{PerNanosecond: perNanosecond}, err
}

// cyclesPerNanosecond is the frequency of the first processor that /proc/cpuinfo lists, in GHz.
func cyclesPerNanosecond(cpuinfo string) (float64, error) {
	for line := range strings.Lines(cpuinfo) {
		name, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(name) != "cpu MHz" {
			continue
		}
		if mhz, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil && mhz > 0 {
			return mhz / 1000, nil
		}
	}
	return 0, withHint(withExit(
		exitEnvironment, errors.New("--units cycles: the kernel does not report the processor's frequency"),
	),
		"/proc/cpuinfo has no \"cpu MHz\" here; leave --units out")
}

// rerun is the command line without parameters and files, for the last line of a failure: with all flags that decide
// how a case ends.
func (f *runFlags) rerun() string {
	if f.whole != "" {
		return f.whole
	}
	words := []string{"rdmarun", "run"}
	add := func(flag, value string) { words = append(words, flag, shell.Word(value)) }
	if f.provider != rdmacore.Soft || f.chosen {
		add("-P", f.provider)
	}
	if f.link.value != rdmacore.Links()[0] {
		add("--link", f.link.value)
	}
	if f.legal.Choices != 0 {
		add("--legal", f.legal.String())
	}
	if f.fabric != "" {
		add("--fabric", f.fabric)
	}
	if f.sharedFabric {
		words = append(words, "--shared")
	}
	f.shared.rerun(add)
	f.lab.rerun(add)
	for _, device := range f.places.devices {
		add("-d", device)
	}
	for _, gid := range f.places.gids {
		add("--gid", gid)
	}
	if f.baselines.against != "" {
		add("--baseline", f.baselines.against)
	}
	if f.noThresholds {
		words = append(words, "--no-thresholds")
	}
	if f.strict {
		words = append(words, "--strict")
	}
	if f.library != "" {
		add("--library", f.library)
	}
	if mode := f.sandbox.value; mode != string(sandbox.Default) {
		add("--sandbox", mode)
	}
	if f.timeout > 0 {
		add("--timeout", quantity.Time(f.timeout))
	}
	if f.stall > 0 {
		add("--stall-timeout", quantity.Time(f.stall))
	}
	if f.timeScale != 1 {
		add("--time-scale", strconv.FormatFloat(f.timeScale, 'g', -1, 64))
	}
	return strings.Join(words, " ")
}
