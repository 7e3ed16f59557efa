package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rdmarun/host/lab"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/meeting"
	"rdmarun/host/scenario/quantity"
)

// participantFlags share a run among several processes.
type participantFlags struct {
	roles, peers []string
	host         string // of a process to meet, where its roles are; "" for none
	ofPerf       bool   // the flags are those of perf
	typed        string // how perf names this process: the server, or the host of the client; "" for --role
	other        string // the command of the other process, for the server of perf
	settings     []meeting.Setting
	meet         string
	wait         time.Duration
}

// Where processes of a run meet by default.
const (
	meetHost = "127.0.0.1"
	meetPort = 18516
)

// register registers the flags.  meet is the letter of --meet, "" for none.
func (f *participantFlags) register(command *cobra.Command, meet string) {
	set := command.Flags()
	set.StringArrayVar(
		&f.roles, "role", nil, "play only this role, and leave the others to other processes (repeatable)",
	)
	set.StringArrayVar(
		&f.peers, "peer", nil,
		"address of a role of another process: ROLE=ADDRESS (repeatable, without it the process waits for the others)",
	)
	set.StringVarP(
		&f.meet, "meet", meet, strconv.Itoa(meetPort),
		"where the processes of a run meet: a TCP port of this host, or ADDRESS:PORT for other hosts",
	)
	set.DurationVar(
		&f.wait, "wait", time.Minute,
		"how long to wait for all roles, or with --lab and --nats for busy agents (default there: none)",
	)
}

// participant reads the flags; nil where this process plays all roles, or agents do.
func (f *participantFlags) participant(command *cobra.Command, agents bool) (*scenario.Participant, error) {
	if f.wait <= 0 {
		return nil, usageError("--wait %s: must be greater than 0", f.wait)
	}
	if len(f.roles) == 0 {
		alone := []string{"peer", "meet"}
		if !agents {
			alone = append(alone, "wait")
		}
		for _, name := range alone {
			if command.Flags().Changed(name) {
				hint := f.splitHint()
				if name == "wait" {
					hint += "; --lab FILE and --nats URL leave all to agents of hosts"
				}
				return nil, withHint(usageError("--%s: this process plays all roles, and needs no other", name), hint)
			}
		}
		return nil, nil
	}
	host, port, err := f.meetingPlace()
	if err != nil {
		return nil, err
	}
	p := &scenario.Participant{
		Roles: f.roles, Addresses: make(map[string]netip.Addr),
		MeetingConfig: meeting.Config{Listen: net.JoinHostPort(host, port), Silence: lab.Silence, Settings: f.settings},
	}
	if f.host != "" {
		address, err := f.resolve(command.Context(), f.host)
		if err != nil {
			return nil, fmt.Errorf("host %s: %w", f.host, err)
		}
		p.MeetingConfig.Peers = append(p.MeetingConfig.Peers, net.JoinHostPort(address.String(), port))
	}
	for _, text := range f.peers {
		role, name, ok := strings.Cut(text, "=")
		if !ok || role == "" || name == "" {
			return nil, withHint(
				usageError("--peer %s: not of the form ROLE=ADDRESS", text), "for example: --peer server=192.0.2.1",
			)
		}
		if slices.Contains(f.roles, role) {
			return nil, usageError("--peer %s: role %s is played by this process", text, role)
		}
		address, err := f.resolve(command.Context(), name)
		if err != nil {
			return nil, fmt.Errorf("--peer %s: %w", text, err)
		}
		p.Addresses[role] = address
		if at := net.JoinHostPort(address.String(), port); !slices.Contains(p.MeetingConfig.Peers, at) {
			p.MeetingConfig.Peers = append(p.MeetingConfig.Peers, at)
		}
	}
	return p, nil
}

// splitHint is how to share the roles among processes.
func (f *participantFlags) splitHint() string {
	if f.ofPerf {
		return "for two processes: a command without --loopback waits, and the other has its host behind the tests"
	}
	return "--role NAME leaves the others to other processes"
}

// aloneHint is what to do instead of a process for all roles by --role.
func (f *participantFlags) aloneHint() string {
	if f.ofPerf {
		return "--loopback plays both roles in one process; without --role, perf is the server and waits for a client"
	}
	return "leave --role out to play all roles in one process; " + f.splitHint()
}

// meetingPlace splits --meet; an empty host is every address.  Without an address it is this host's own: any process
// that reaches the place could take a role, so the user must allow other hosts.
func (f *participantFlags) meetingPlace() (host, port string, err error) {
	host, port = meetHost, f.meet
	if strings.Contains(f.meet, ":") {
		if host, port, err = net.SplitHostPort(f.meet); err != nil {
			return "", "", withHint(
				usageError("--meet %s: %w", f.meet, err),
				"--meet 18516 on one host, or --meet 192.0.2.1:18516 for others to come",
			)
		}
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		return "", "", withHint(
			usageError("--meet %s: no TCP port", f.meet),
			"--meet 18516 on one host, or --meet 192.0.2.1:18516 for others to come",
		)
	}
	return host, port, nil
}

// resolve finds the address of a name; most RoCE GIDs in use are of IPv4.
func (f *participantFlags) resolve(ctx context.Context, name string) (netip.Addr, error) {
	if address, err := netip.ParseAddr(name); err == nil {
		return address.Unmap(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.wait)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return netip.Addr{}, withExit(exitEnvironment, err)
	}
	if i := slices.IndexFunc(found, func(a netip.Addr) bool { return a.Unmap().Is4() }); i >= 0 {
		return found[i].Unmap(), nil
	}
	return found[0], nil
}

// check refuses what cannot be shared among processes.
func (f *participantFlags) check(run *runFlags, config *scenario.RunConfig) error {
	switch {
	case config.Participant == nil:
		return nil
	case run.jobs > 1:
		return usageError("--jobs %d: with %s, processes run one case at a time", run.jobs, f.given())
	case run.retries > 0 || config.UntilFail:
		return usageError(
			"--retries and --repeat until-fail: with %s, every process runs each case as often as the others",
			f.given(),
		)
	}
	return nil
}

// given is what the user has typed to share the run.
func (f *participantFlags) given() string {
	if f.typed != "" {
		return f.typed
	}
	return "--role " + strings.Join(f.roles, " --role ")
}

// join waits for the other processes, and reports that.
func (f *participantFlags) join(
	ctx context.Context, a *app, config *scenario.RunConfig, cases []scenario.Selected,
) error {
	participant := config.Participant
	if err := participant.Check(config, cases); err != nil {
		return usageError("%w", err)
	}
	if len(cases) > 0 && participant.Alone(cases) {
		return withHint(
			usageError("%s: this process plays all roles, and needs no other", f.given()),
			f.aloneHint(),
		)
	}
	waiting, cancel := context.WithTimeout(ctx, f.wait)
	defer cancel()
	where := "waits at " + participant.MeetingConfig.Listen + " for the processes of the other roles"
	if len(participant.MeetingConfig.Peers) > 0 {
		where = "looks for the other roles at " + strings.Join(participant.MeetingConfig.Peers, ", ")
	}
	if f.other != "" {
		where = fmt.Sprintf(
			"waits at %s for a client, at most %s; on the other host type\n  %s",
			participant.MeetingConfig.Listen, quantity.Time(f.wait), f.other,
		)
	}
	fmt.Fprintf(a.stderr, "rdmarun: %s %s\n", f.given(), where)
	participant.MeetingConfig.Refused = a.warn
	if err := participant.Meet(waiting, cases); err != nil {
		if differs := (*meeting.DifferError)(nil); errors.As(err, &differs) {
			// has the remedy
			return withExit(exitEnvironment, fmt.Errorf("%s: %w", f.given(), err))
		}
		hint := "start one process without --peer: it waits (at --meet ADDRESS:PORT for other hosts). Start the " +
			"others with --peer ROLE=ADDRESS of a role of that one. Give all the same files, parameters and selection"
		if f.ofPerf {
			hint = "give both ends the same tests and flags. Start one without a host: it waits. Give the other " +
				"the host of that one, after the tests. Or run both roles in one process by --loopback"
		}
		return withHint(
			withExit(exitEnvironment, fmt.Errorf("%s: %w", f.given(), err)), hint,
		)
	}
	return nil
}

// rerun are the words that repeat it.
func (f *participantFlags) rerun(add func(flag, value string)) {
	for _, role := range f.roles {
		add("--role", role)
	}
	for _, peer := range f.peers {
		add("--peer", peer)
	}
	if f.meet != strconv.Itoa(meetPort) {
		add("--meet", f.meet)
	}
}
