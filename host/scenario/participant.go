package scenario

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/exec"
	"rdmarun/host/scenario/meeting"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
)

// Participant is what this process plays of a run that several processes do together.
type Participant struct {
	// Roles are as the files have them, or instances: "client[0]".
	Roles []string
	// Addresses are those of roles elsewhere.
	Addresses map[string]netip.Addr
	// MeetingConfig is how the processes meet; Meet fills in the processes and the purpose.
	MeetingConfig meeting.Config
	// Controller is set in a process that plays no role: it selects the case that runs, and the processes that take
	// part.
	Controller *Controller
	// ControllerName is the name of the process that leads; empty: each process runs all cases, in the order of the
	// files.
	ControllerName string
	// meeting is with the others, after Meet.
	meeting *meeting.Meeting
	// keys are what all of them call the cases, by their ids here.
	keys map[string]string
}

// Controller is what the process that leads a run needs.
type Controller struct {
	// Players are the processes that play roles, by the names of these.
	Players map[string]string
	// Skip has the reasons why cases do not run, by their ids.
	Skip map[string]string

	// Clocks are the wall clocks of the processes.
	Clocks map[string]record.Clock

	quota quota // for records of other processes

	mu      sync.Mutex
	current *record.Stream // of the case that runs; nil between two
	of      Selected
	began   time.Time
}

// has reports whether this process plays a role.
func (p *Participant) has(role testbed.RoleConfig) bool {
	return slices.Contains(p.Roles, role.Name) || slices.Contains(p.Roles, role.Written())
}

// Meet waits until the processes of all roles are there, until ctx ends at the latest.  Close leaves them.
func (p *Participant) Meet(ctx context.Context, cases []Selected) error {
	config := p.MeetingConfig
	p.keys = make(map[string]string)
	for _, each := range cases {
		key, err := planned(each)
		if err != nil {
			return err
		}
		config.Plan = append(config.Plan, key)
		p.keys[each.Case.ID] = key
		for _, role := range each.Case.Roles {
			if slices.Contains(config.All, role.Name) {
				continue
			}
			if config.All = append(config.All, role.Name); p.has(role) {
				config.Roles = append(config.Roles, role.Name)
			}
		}
	}
	if p.Controller != nil {
		config.Report, config.Players = p.Controller.take, p.Controller.Players
	}
	met, err := meeting.Join(ctx, config)
	p.meeting = met
	return err
}

// reached is this host's address by which a process of another host is reached. It is "" if there is none, or if all
// are on this host: there each role on soft has an address of its own.
func (p *Participant) reached() string {
	if p == nil || p.meeting == nil || !p.meeting.Reached().IsValid() || p.meeting.Reached().IsLoopback() {
		return ""
	}
	return p.meeting.Reached().String()
}

// Close leaves the others.
func (p *Participant) Close() {
	if p.meeting != nil {
		p.meeting.Close()
	}
}

// planned is a case as all processes must have it. It has its id without the folders of its file, and a digest of what
// decides its steps.
func planned(each Selected) (string, error) {
	text, err := os.ReadFile(each.Scenario.Located())
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	sum.Write(text)
	for _, constant := range each.Case.Constants {
		fmt.Fprintf(sum, "%q=%q\n", constant.Name, constant.Text)
	}
	return fmt.Sprintf(
		"%s (%x)", path.Base(filepath.ToSlash(each.Scenario.Path))+each.Case.ID[len(each.Scenario.Path):],
		sum.Sum(nil)[:4],
	), nil
}

// Alone reports whether this process plays all roles of the cases, so that no other process takes part.
func (p *Participant) Alone(cases []Selected) bool {
	return !slices.ContainsFunc(cases, func(each Selected) bool { return len(p.here(each).Case.Elsewhere) > 0 })
}

// here is a case with the roles alone that this process plays.
func (p *Participant) here(each Selected) Selected {
	if p == nil {
		return each
	}
	copied := *each.Case
	each.all, copied.Roles = each.Case.Roles, nil
	for i, role := range each.Case.Roles {
		if p.has(role) {
			role.Position = i
			copied.Roles = append(copied.Roles, role)
		} else {
			copied.Elsewhere = append(copied.Elsewhere, role)
		}
	}
	each.Case = &copied
	return each
}

// Need is what a part of a case needs of its host: a provider by its name, NeedGuests or NeedMeasure, and what for.
type Need struct{ What, For string }

// What parts need in addition to providers.
const (
	NeedGuests  = exec.NeedGuests
	NeedProgram = exec.NeedProgram
	NeedMeasure = exec.NeedMeasure
)

// Needs are what this process' part of a case needs of its host, each once.
func (p *Participant) Needs(config *RunConfig, each Selected) (needs []Need) {
	here := p.here(each)
	add := func(what, format string, args ...any) {
		if !slices.ContainsFunc(needs, func(n Need) bool { return n.What == what }) {
			needs = append(needs, Need{what, fmt.Sprintf(format, args...)})
		}
	}
	if len(here.Case.Roles) == 0 {
		return nil
	}
	configs := (&providers{config: config}).configs(here)
	for i, role := range here.Case.Roles {
		add(configs[i].Name, "role %s is on it", role.Written())
		if role.Guest != nil {
			add(NeedGuests, "role %s is one", role.Written())
		}
		if role.Program != nil {
			add(NeedProgram, "role %s is one", role.Written())
		}
	}
	here.Case.EachCall(func(step *compile.Step, call *compile.Call) {
		if call.Verb.Measures {
			add(
				NeedMeasure, "%s:%d is a %s", path.Base(filepath.ToSlash(each.Scenario.Path)), step.Span.Line,
				call.Verb.Name,
			)
		}
	})
	return needs
}

// Check rejects cases that several processes cannot run together. They have a step on roles of two of them, or roles
// that meet and cannot reach each other.
func (p *Participant) Check(config *RunConfig, cases []Selected) error {
	on := &providers{config: config}
	var failures []error
	known := RoleNames(cases)
	for _, name := range slices.Concat(p.Roles, slices.Sorted(maps.Keys(p.Addresses))) {
		if !slices.Contains(known, name) {
			hint := diag.Suffix(diag.DidYouMean(name, known))
			failures = append(failures, fmt.Errorf("no selected case has a role %q%s", name, hint))
		}
	}
	seen := make(map[string]bool)
	add := func(span diag.Span, format string, args ...any) {
		text := fmt.Sprintf("%s:%d:%d: %s", span.File(), span.Line, span.Column, fmt.Sprintf(format, args...))
		if !seen[text] {
			seen[text] = true
			failures = append(failures, errors.New(text))
		}
	}
	for _, each := range cases {
		p.unfit(on, each, "in two processes", add)
	}
	return errors.Join(failures...)
}

// Unfit is why processes that play roles, by the names of these, cannot run a case together; "" if they can.
func Unfit(config *RunConfig, each Selected, players map[string]string) (reason string) {
	on := &providers{config: config}
	roles := make(map[string][]string)
	for role, process := range players {
		roles[process] = append(roles[process], role)
	}
	for _, process := range slices.Sorted(maps.Keys(roles)) {
		(&Participant{Roles: roles[process]}).unfit(on, each, "on two hosts",
			func(span diag.Span, format string, args ...any) {
				if reason == "" {
					reason = fmt.Sprintf("in line %d ", span.Line) + fmt.Sprintf(format, args...)
				}
			})
	}
	return reason
}

// unfit reports what processes, or hosts, cannot do together of a case of which this party plays a part.
func (p *Participant) unfit(on *providers, each Selected, apart string, add func(diag.Span, string, ...any)) {
	mine := make(map[string]bool)
	for _, role := range p.here(each).Case.Roles {
		mine[role.Name] = true
	}
	p.divided(each.Case, mine, apart, add)
	configs := on.configs(each)
	for _, meeting := range each.Case.Meetings {
		for i, role := range each.Case.Roles {
			if one, other := meeting.Roles[0], meeting.Roles[1]; mine[one] == mine[other] || !mine[role.Name] ||
				role.Name != one && role.Name != other {
				continue
			}
			if configs[i].LocalOnly() {
				add(meeting.Span, "%s and %s are %s, and %s, on %s, reaches only its own roles: --link udp, "+
					"or -P verbs",
					meeting.Roles[0], meeting.Roles[1], apart, role.Name, configs[i])
			}
		}
	}
}

// divided reports steps of which parts are here and parts elsewhere.
func (p *Participant) divided(
	c *compile.Case, mine map[string]bool, apart string, add func(diag.Span, string, ...any),
) {
	c.EachCall(func(step *compile.Step, call *compile.Call) {
		if call.Verb.Split {
			return // each process has its part
		}
		var roles []string
		instead := remedy
		if call.Role != nil {
			if name, known := call.Role.Constant(); known {
				roles = append(roles, name.(string))
			}
		}
		for i, argument := range call.Verb.Arguments {
			if i < len(call.Arguments) && call.Arguments[i] != nil {
				// of a link one end will do
				if value, known := call.Arguments[i].Constant(); known && !(argument.Type == verb.Roles) {
					roles = append(roles, verb.RolesNamed(argument.Type, value)...)
					name, is := value.(verb.BufferName)
					if is && len(roles) > 0 && mine[name.Role] != mine[roles[0]] {
						instead = insteadOf(call.Verb.Name, argument.Name, name, roles[0])
					}
				}
			}
		}
		for _, role := range roles {
			if mine[role] != mine[roles[0]] {
				add(
					step.Span, "%s works on %s and %s, which are %s: %s", call.Verb.Name, roles[0], role, apart,
					instead,
				)
				return
			}
		}
	})
}

// remedy is what can be done about a step that is divided.
const remedy = "give both roles to one process, or send what it needs in a message"

// insteadOf is what to write in place of a buffer of a role that is apart from the step's.
func insteadOf(called, argument string, buffer verb.BufferName, role string) string {
	switch {
	case argument == "buffer":
		return fmt.Sprintf(
			"instead of buffer: %s, write {role: %s, %s: {buffer: %s, ..}}", buffer, buffer.Role, called, buffer.Name,
		)
	case called == "check":
		return fmt.Sprintf(
			"instead of %s: %s, write its bytes (equals: {text: ..}, or all: N), or name a buffer of %s with the "+
				"same data", argument, buffer, role,
		)
	}
	return remedy
}
