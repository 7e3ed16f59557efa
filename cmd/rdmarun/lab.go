package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rdmarun/host/bus/tunnel"
	"rdmarun/host/lab"
	"rdmarun/host/lab/control"
	"rdmarun/host/lab/join"
	"rdmarun/host/lab/launch"
	"rdmarun/host/pack"
	"rdmarun/host/printable"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/meeting"
	"rdmarun/rdmacore"
)

// labFlags share a run among the hosts of a lab.
type labFlags struct {
	file    string
	places  []string
	nats    natsFlags
	lab     *lab.Lab  // once it is read
	joined  *join.Lab // once it is connected; nil for a lab of which no host has joined a NATS server
	wait    func() time.Duration
	changed func(flag string) bool
	// ambient is the URL in the environment, for all labs: a repeated run has it, and its password.
	ambient string
	// tries has hosts of which one reaches no other run a case together: how that fails is asked.
	tries bool
	// close ends what read has opened; nil: nothing.
	close func()
}

func (f *labFlags) register(command *cobra.Command) {
	set := command.Flags()
	set.StringVar(
		&f.file, "lab", "", "play the roles on the hosts of this lab file, each by an agent that is started there",
	)
	set.StringArrayVar(
		&f.places, "place", nil,
		"the host of a role: ROLE=HOST, ROLE=HOST,HOST[1-4] or ROLE=LABEL=VALUE, several with commas between "+
			"(repeatable)",
	)
	f.nats.register(
		command, "nats",
		"play the roles on the agents that wait on the NATS server at this URL, or those of them that --lab names",
	)
	f.changed = command.Flags().Changed
}

// active reports whether agents on hosts play the roles.
func (f *labFlags) active() bool { return f.file != "" || f.nats.url != "" }

// isSet reports whether the user has set a flag.
func (f *labFlags) isSet(flag string) bool { return f.changed != nil && f.changed(flag) }

// end ends what the lab has needed.
func (f *labFlags) end() {
	if f.close != nil {
		f.close()
	}
}

// named is the lab in errors.
func (f *labFlags) named() string {
	if f.file != "" {
		return f.file
	}
	return tunnel.Where(f.nats.url)
}

// controllerName is what the other processes call this one.
const controllerName = "the controller"

// rerun are the words that repeat it.
func (f *labFlags) rerun(add func(flag, value string)) {
	if f.file != "" {
		add("--lab", f.file)
	}
	if f.nats.url != "" && f.nats.url != f.ambient {
		add("--nats", tunnel.Where(f.nats.url))
	}
	if f.nats.user != "" {
		add("--nats-user", f.nats.user)
	}
	for _, word := range natsWords {
		if file := f.nats.files()[word]; file != "" {
			add("--"+word, file)
		}
	}
	for _, place := range f.places {
		add("--place", place)
	}
}

// check refuses what a run over hosts cannot have.
func (f *labFlags) check(run *runFlags) error {
	switch {
	case !f.active() && len(f.places) > 0:
		return withHint(
			usageError("--place: there is no lab"),
			"--lab FILE says which hosts there are, --nats URL where agents wait",
		)
	case !f.active():
		return nil
	case len(run.shared.roles) > 0:
		return usageError("--lab and --role: with a lab, its agents play all roles")
	case run.jobs > 1:
		return usageError("--jobs %d: with --lab, one case runs at a time", run.jobs)
	case len(run.places.devices)+len(run.places.gids) > 0:
		return withHint(
			usageError("--device and --gid: with --lab, the lab file says what a host has"),
			"device: and address: of the host",
		)
	}
	return nil
}

// hosted is a run over the hosts of a lab.
type hosted struct {
	lab      *lab.Lab
	cases    []scenario.Selected // that can run
	hosts    []lab.Host          // that play roles of them
	players  map[string]string   // hosts by roles
	skip     map[string]string
	roles    map[string][]string // by hosts
	counts   map[string]int      // of the hosts that counted roles are placed on
	control  *control.Controller
	capture  *lab.Capture // nil: no packets
	failures *lab.Capture // of each case that failed; nil: no packets
	trace    *lab.Trace   // nil: no calls
}

// names are the hosts with agents that have come.
func (h *hosted) names() (names []string) {
	for _, host := range h.control.Hosts() {
		names = append(names, host.Name)
	}
	return names
}

// read reads the lab file, and asks agents that have joined for their descriptions.
func (f *labFlags) read(ctx context.Context, a *app) (*lab.Lab, error) {
	if f.lab != nil {
		return f.lab, nil
	}
	read := &lab.Lab{Groups: make(map[string][]string), Place: make(map[string]lab.Placement)}
	if f.file != "" {
		var wrong *diag.List
		if read, wrong = lab.Read(f.file); wrong.Len() > 0 {
			if err := wrong.Render(a.stderr, diag.Painter{}); err != nil {
				return nil, err
			}
			return nil, reported(exitUsage)
		}
	}
	var err error
	if f.joined, err = f.standing(a, read); err != nil {
		return nil, err
	}
	if f.joined != nil {
		if err := f.gather(ctx, read); err != nil {
			return nil, err
		}
	}
	for _, text := range f.places {
		if err := read.Override(text); err != nil {
			if errors.Is(err, lab.ErrForm) {
				return nil, withHint(usageError("--place %w", err), "for example: --place server=a")
			}
			return nil, usageError("--place %w", err)
		}
	}
	f.lab = read
	return read, nil
}

// plan places the roles of the cases.
func (f *labFlags) plan(
	ctx context.Context, a *app, config *scenario.RunConfig, cases []scenario.Selected,
) (*hosted, error) {
	if !f.isSet("link") {
		config.Link = rdmacore.LinkUDP // what reaches another host
	}
	read, err := f.read(ctx, a)
	if err != nil {
		return nil, err
	}
	if err := f.checkPlaced(a, cases); err != nil {
		return nil, err
	}
	h := &hosted{
		lab: read, counts: make(map[string]int), players: make(map[string]string), skip: make(map[string]string),
		roles: make(map[string][]string),
	}
	for _, each := range cases {
		for _, role := range each.Case.Roles {
			if h.players[role.Name] != "" {
				continue
			}
			if role.Group != "" {
				h.counts[role.Group] = read.Count(role.Group)
			}
			host, err := read.HostOf(lab.Role{
				Name: role.Name, Group: role.Group, Index: role.Index, Number: len(h.players),
			})
			if err != nil {
				hint := fmt.Sprintf(
					"place: {%s: HOST} in the lab file, or --place %s=HOST", role.Written(), role.Written(),
				)
				if misspelled := diag.Suggest(
					role.Written(), read.UnknownRoles(scenario.RoleNames(cases)),
				); misspelled != "" {
					hint = fmt.Sprintf(
						"%s places a role %q: did you mean %q?", read.Place[misspelled].Where(), misspelled,
						role.Written(),
					)
				}
				return nil, withHint(usageError("%s: %w", f.named(), err), hint)
			}
			h.players[role.Name] = host
			h.roles[host] = append(h.roles[host], role.Name)
		}
	}
	needed := make(map[string]bool)
	for _, each := range cases {
		players := make(map[string]string)
		for _, role := range each.Case.Roles {
			players[role.Name] = h.players[role.Name]
		}
		reason := scenario.Unfit(config, each, players)
		if reason == "" && !f.tries {
			reason = h.apart(config, each, players)
		}
		if reason != "" {
			h.skip[each.Case.ID] = reason
			continue
		}
		h.cases = append(h.cases, each)
		for _, host := range players {
			needed[host] = true
		}
	}
	for _, host := range read.Hosts {
		if needed[host.Name] {
			h.hosts = append(h.hosts, host)
		}
	}
	return h, nil
}

// checkPlaced refuses the place of a role that no case has.  What the environment has is for other files, too.
func (f *labFlags) checkPlaced(a *app, cases []scenario.Selected) error {
	if a.env[environmentName("place")] != "" {
		return nil
	}
	known := scenario.RoleNames(cases)
	for _, role := range lab.RolesIn(f.places) {
		if !slices.Contains(known, role) && role != lab.OtherRoles {
			return withHint(usageError("--place: no selected case has a role %q", role), diag.OneOf(role, known))
		}
	}
	return nil
}

// apart is why a case cannot run: its roles are on two hosts, and one of them has no link to others. "" if it can.
func (h *hosted) apart(config *scenario.RunConfig, each scenario.Selected, players map[string]string) string {
	for _, meeting := range each.Case.Meetings {
		if players[meeting.Roles[0]] == players[meeting.Roles[1]] {
			continue
		}
		for _, role := range meeting.Roles {
			host := h.lab.Host(players[role])
			if host != nil && cmp.Or(host.Provider, config.ProviderName) == rdmacore.Soft && host.Link != "" &&
				host.Link != rdmacore.LinkUDP {
				return fmt.Sprintf("in line %d %s and %s are on two hosts, and soft's link %s of %s reaches no other "+
					"host: remove link",
					meeting.Span.Line, meeting.Roles[0], meeting.Roles[1], host.Link, host.Name)
			}
		}
	}
	return ""
}

// open starts the agents and gives each its part; closing ends them.
func (f *labFlags) open(
	ctx context.Context, a *app, run *runFlags, config *scenario.RunConfig, cases []scenario.Selected,
) (closing func() error, err error) {
	h, err := f.plan(ctx, a, config, cases)
	if err != nil {
		return nil, err
	}
	if err := run.checkCaptured(a, h.hosts); err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, withExit(exitEnvironment, err)
	}
	launcher := a.launcher(program)
	launcher.Standing = f.joined
	h.control, err = control.Start(ctx, h.hosts, launcher)
	if err != nil {
		if h.control != nil {
			h.control.Close()
		}
		return nil, withExit(exitEnvironment, withHostHint(err))
	}
	return f.begin(ctx, a, run, config, h)
}

// begin gives the agents of a lab their parts; closing ends them, also those that cannot begin.
func (f *labFlags) begin(
	ctx context.Context, a *app, run *runFlags, config *scenario.RunConfig, h *hosted,
) (closing func() error, err error) {
	clocks := make(map[string]record.Clock)
	endCapture, endTrace := func() error { return nil }, func() {}
	closing = func() error {
		config.Participant.Close()
		endTrace()
		err := endCapture()
		killed, left := h.control.Close()
		if len(killed) > 0 {
			a.warn(fmt.Sprintf(
				"the agents of %s did not end by themselves, and were killed", strings.Join(killed, ", "),
			))
		}
		for _, each := range left {
			a.warn(each)
		}
		return err
	}
	config.Participant = &scenario.Participant{
		Controller: &scenario.Controller{Players: h.players, Skip: h.skip, Clocks: clocks},
		MeetingConfig: meeting.Config{
			Name: controllerName, Server: h.control.Server(), Members: h.control.Members(), Silence: lab.Silence,
			Why: h.control.Why,
		},
	}
	waiting, cancel := context.WithTimeoutCause(ctx, readyTime, fmt.Errorf("it is not ready within %s", readyTime))
	defer cancel()
	if endCapture, err = run.capture.collect(ctx, a, h, clocks, config); err != nil {
		return nil, errors.Join(err, closing())
	}
	if endTrace, err = run.trace.collect(ctx, a, h, config.GuestTrace); err != nil {
		return nil, errors.Join(err, closing())
	}
	if err := h.order(waiting, a, run, config); err != nil {
		return nil, errors.Join(withExit(exitEnvironment, withHostHint(err)), closing())
	}
	maps.Copy(clocks, h.control.Clocks(waiting))
	meeting, stop := h.control.Watch(waiting)
	err = config.Participant.Meet(meeting, h.cases)
	if silent := stop(); silent != nil && err != nil {
		return nil, errors.Join(withExit(exitEnvironment, withHostHint(silent)), closing())
	} else if err != nil {
		return nil, errors.Join(withExit(exitEnvironment, fmt.Errorf("%s: %w", f.named(), err)), closing())
	}
	return closing, nil
}

// readyTime bounds how long hosts may take for all that is before the first case.
const readyTime = 2 * time.Minute

// withHostHint adds what is to be done about hosts that cannot take part: of many, the first.
func withHostHint(err error) error {
	var failed *control.HostError
	if errors.As(err, &failed) && failed.Hint() != "" {
		return withHint(err, failed.Hint())
	}
	return err
}

// launcher is how agents are started; what a host prints goes to standard error.
func (a *app) launcher(program string) launch.Config {
	said := a.aside()
	return launch.Config{
		Program: program, Version: buildVersion().Version,
		Print: func(host, line string) { fmt.Fprintf(said, "rdmarun: host %s: %s\n", host, printable.Log(line)) },
		Waits: func(come, hosts int, missing []string) {
			more := ""
			if n := len(missing) - maxNames; n > 0 {
				missing, more = missing[:maxNames], fmt.Sprintf(" and %d more", n)
			}
			fmt.Fprintf(
				said, "rdmarun: %d of %d hosts are ready, not yet %s%s\n", come, hosts, strings.Join(missing, ", "),
				more,
			)
		},
	}
}

// maxNames is how many hosts are named in a line.
const maxNames = 8

// order gives each host its part of the run.
func (h *hosted) order(ctx context.Context, a *app, run *runFlags, config *scenario.RunConfig) error {
	archive, order, err := h.files()
	if err != nil {
		return err
	}
	params, err := run.params.read(a)
	if err != nil {
		return err
	}
	order.Controller, order.Given, order.Environment = controllerName, params.Given, params.Environment
	order.FilesChoose, order.Seed, order.Drawn = config.FilesChoose, config.Seed, config.Drawn
	order.TimeScale, order.Stall, order.Interval, order.NoThresholds = config.TimeScale, config.Stall, config.Interval,
		config.NoThresholds
	order.Silence, order.Hosts, order.Capture, order.OnFailure, order.Trace = lab.Silence, h.counts, h.capture,
		h.failures, h.trace
	stream := record.NewStream(config.Consumers...)
	for _, kind := range []record.Kind{record.StepEnd, record.Output, record.Measuring, record.DeviceUsed} {
		if stream.Wants(kind) {
			order.Wants = append(order.Wants, kind)
		}
	}
	provider := func(host lab.Host) (name string, own bool) {
		if host.Provider != "" && !run.chosen {
			return host.Provider, true
		}
		return config.ProviderName, false
	}
	for _, host := range h.hosts {
		name, _ := provider(host)
		config.HostProviders = append(config.HostProviders, name)
	}
	slices.Sort(config.HostProviders)
	config.HostProviders = slices.Compact(config.HostProviders)
	return h.control.Order(ctx, archive, func(host lab.Host) lab.Order {
		own := order
		own.Process, own.Roles = host.Name, h.roles[host.Name]
		var chosen bool
		own.Provider, chosen = provider(host)
		own.FilesChoose, own.Link = order.FilesChoose && !chosen, config.Link
		own.Legal = config.Legal
		if host.Link != "" {
			own.Link = host.Link
		}
		own.Places, own.Addresses = h.places(host), h.addresses(host)
		own.Route = routes(host, own.Provider)
		return own
	})
}

// files packs the scenarios of the cases with what they need.
func (h *hosted) files() (archive []byte, order lab.Order, err error) {
	var located, others []string
	order.Files.Archives = make(map[string]string)
	for _, each := range h.cases {
		order.Cases = append(order.Cases, each.Case.ID)
		if slices.Contains(order.Scenarios, each.Scenario.Path) {
			continue
		}
		order.Scenarios = append(order.Scenarios, each.Scenario.Path)
		located = append(located, each.Scenario.Located())
		others = append(others, each.Scenario.Needs()...)
		path, at := filepath.Clean(each.Scenario.Path), each.Scenario.Located()
		if archive, is := packOf(path); is {
			order.Files.Archives[archive] = strings.TrimSuffix(at, strings.TrimPrefix(path, archive))
		} else if at != each.Scenario.Path {
			order.Files.Archives[path] = at // of perf
		}
	}
	if len(located) == 0 {
		return nil, order, nil
	}
	var packed bytes.Buffer
	manifest, err := pack.Write(&packed, located, others)
	if err != nil {
		return nil, order, err
	}
	if packed.Len() > lab.MaxPack {
		return nil, order, fmt.Errorf(
			"the scenarios with their guests have %d bytes, and agents take %d", packed.Len(), lab.MaxPack,
		)
	}
	first, err := filepath.Abs(located[0])
	if err != nil {
		return nil, order, err
	}
	order.Files.Base = filepath.Clean(strings.TrimSuffix(filepath.ToSlash(first), manifest.Scenarios[0]))
	order.Files.Folder, err = os.Getwd()
	return packed.Bytes(), order, err
}

// routes reports whether roles take an address that other hosts reach: those of soft have one of this host alone
// otherwise.
func routes(host lab.Host, provider string) bool { return !host.Local() && provider == rdmacore.Soft }

// places are where the roles of a host are on it: they share its devices in turns.
func (h *hosted) places(host lab.Host) map[string]scenario.Place {
	places := make(map[string]scenario.Place)
	for i, role := range h.roles[host.Name] {
		place := scenario.Place{Host: host.Name, Labels: host.Labels}
		if len(host.Devices) > 0 {
			place.Device = host.Devices[i%len(host.Devices)]
		}
		if host.Address.IsValid() {
			place.GID = host.Address.String()
		}
		places[role] = place
	}
	return places
}

// addresses are those of the roles of other hosts, as far as the lab has them.
func (h *hosted) addresses(from lab.Host) map[string]netip.Addr {
	addresses := make(map[string]netip.Addr)
	for role, name := range h.players {
		if host := h.lab.Host(name); name != from.Name && host.Address.IsValid() {
			addresses[role] = host.Address
		}
	}
	return addresses
}
