// Package agent is the part of a lab's host: it plays the roles that its controller gives it, and ends with its pipe.
package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"rdmarun/host/bus"
	"rdmarun/host/lab"
	"rdmarun/host/lab/capture"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/meeting"
	"rdmarun/rdmacore"
)

// Config is what an agent is.
type Config struct {
	// Version is that of this program.
	Version string
	// Open opens a provider by its name for a whole run.
	Open func(name string, config *scenario.RunConfig) (closing func() error, err error)
	// Trace writes the calls of guests, of those functions or of all, to out; each write is of whole lines.
	Trace func(out io.Writer, functions []string, config *scenario.RunConfig) (closing func() error, err error)
	// GuestCache is the directory of compiled guests; empty for the user's own.
	GuestCache string
	// GuestCompiler compiles guests that are not there (guest.RuntimeConfig).
	GuestCompiler []string
	// Confine restricts the agent's process before its first guest starts; nil does not.
	Confine func() error
	// Warn reports something that is not an answer to a request.
	Warn func(text string)
	// Allow are the words (lab.CheckAllow) that the owner of this host allows controllers; nil: all but programs.
	Allow []string
	// Environment is that of native programs that play roles.
	Environment map[string]string
	// Examine looks at this host.
	Examine func(ctx context.Context, what lab.Look) lab.Examined
	// Die ends the process at once: its controller is gone, and what it does has not ended for endTime.
	Die func()
}

const (
	// greetingTime bounds the wait for the controller's first line, orderTime that for its order.
	greetingTime, orderTime = 10 * time.Second, 10 * time.Minute
	// endTime is how long what runs may take to end once the controller is gone.
	endTime = 9 * time.Second
	// meetTime bounds the wait for the other agents.
	meetTime = 2 * time.Minute
)

// pipe is standard input and output.
type pipe struct {
	io.Reader
	io.Writer
	close func() error
}

func (p *pipe) Close() error { return p.close() }

// Serve plays roles for the controller at the other end of a pipe until that ends.  It returns nil when the controller
// has had all that it wanted.
func Serve(ctx context.Context, input io.Reader, output io.Writer, closing func() error, config Config) error {
	reader := bufio.NewReader(input)
	line, err := firstLine(ctx, reader)
	if err != nil {
		return err
	}
	who, err := lab.ParseGreeting(line)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(output, lab.NewAnswer(config.Version)); err != nil {
		return err
	}
	conn, err := bus.Over(who, &pipe{reader, output, closing})
	if errors.Is(err, io.EOF) {
		return nil // another host has not come, so that the controller needs none
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-conn.Closed():
			cancel(errGone)
			time.AfterFunc(endTime, config.Die)
		case <-ctx.Done():
		}
	}()
	return serve(ctx, conn, config)
}

// errGone ends an agent after its controller has gone.
var errGone = errors.New("the controller is gone")

// firstLine reads the greeting, for which a terminal would wait forever.
func firstLine(ctx context.Context, reader *bufio.Reader) (string, error) {
	type read struct {
		line string
		err  error
	}
	came := make(chan read, 1)
	go func() {
		line, err := reader.ReadSlice('\n') // of some length: a greeting is short; the process ends with it
		came <- read{string(line), err}
	}()
	select {
	case got := <-came:
		if got.err != nil {
			return "", errors.New("there is no controller: `rdmarun run --lab FILE` starts agents")
		}
		return got.line, nil
	case <-time.After(greetingTime):
		return "", errors.New("no controller speaks: `rdmarun run --lab FILE` starts agents")
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// serve waits for the order of the controller and does it.
func serve(ctx context.Context, conn *bus.Conn, config Config) error {
	orders := make(chan *bus.Message, 1)
	stop, err := conn.Listen(func(said *bus.Message) {
		switch said.Subject {
		case bus.To(conn.Name(), lab.SubjectExamine):
			go examine(ctx, config, said)
		case bus.To(conn.Name(), lab.SubjectClock):
			_ = said.Respond(fmt.Append(nil, time.Now().UnixNano()))
		case bus.To(conn.Name(), lab.SubjectOrder):
			select {
			case orders <- said:
			default:
				answer(said, errors.New("this agent has an order already"))
			}
		}
	}, bus.To(conn.Name(), lab.SubjectClock), bus.To(conn.Name(), lab.SubjectExamine),
		bus.To(conn.Name(), lab.SubjectOrder))
	if errors.Is(err, bus.ErrClosed) {
		return nil // as in Serve
	}
	if err != nil {
		return err
	}
	defer stop()
	waiting, cancel := context.WithTimeoutCause(ctx, orderTime, errors.New("the controller has no order"))
	defer cancel()
	select {
	case said := <-orders:
		return do(ctx, conn, config, said)
	case <-waiting.Done():
		if errors.Is(context.Cause(waiting), errGone) {
			return nil // the controller only checks that this agent is there
		}
		return context.Cause(waiting)
	}
}

// examine looks at this host.
func examine(ctx context.Context, config Config, said *bus.Message) {
	var what lab.Look
	found := lab.Examined{Version: config.Version}
	if err := json.Unmarshal(said.Data, &what); err != nil {
		found.Error = "what to look at cannot be read: " + err.Error()
	} else if refused := config.refuse(what.Provider, "the controller would look at it"); refused != nil {
		found.Error = refused.Error() + ": " + refused.Hint()
	} else {
		found = config.Examine(ctx, what)
	}
	raw, err := json.Marshal(found)
	if err == nil {
		err = said.Respond(raw)
	}
	if err != nil {
		config.Warn(err.Error())
	}
}

// refusedError is what the owner of this host does not allow.
type refusedError struct{ word, why, hint string }

func (e *refusedError) Error() string {
	return fmt.Sprintf("its owner does not allow %.40q, and %s", e.word, e.why)
}

// Hint is what to do about it.
func (e *refusedError) Hint() string { return e.hint }

// refuse refuses what the owner of this host does not allow.
func (c *Config) refuse(word, why string) *refusedError {
	if lab.Allows(c.Allow, word, "") {
		return nil
	}
	if word == scenario.NeedProgram {
		return &refusedError{
			word, why,
			"on that host: rdmarun agent --allow soft,program=/usr/bin/ib_*; an agent that the lab file starts: " +
				"programs: [/usr/bin/ib_*]",
		}
	}
	if !slices.Contains(lab.Allowable(), word) {
		return &refusedError{word, why, "there is no such word for --allow"}
	}
	return &refusedError{
		word, why,
		fmt.Sprintf("on that host: rdmarun agent --allow %s", strings.Join(append(slices.Clone(c.Allow), word), ",")),
	}
}

// refuseProgram rejects a program, by its path, that the owner of this host does not allow. It also rejects one with
// variables that the owner does not allow. Many variables make a program load other code.
func (c *Config) refuseProgram(program string, variables []string) error {
	refused := ""
	if !lab.Allows(c.Allow, scenario.NeedProgram, program) {
		refused = "program=" + program
	}
	for _, name := range variables {
		if refused == "" && !lab.AllowsVariable(c.Allow, name) {
			refused = "env=" + name
		}
	}
	if refused == "" {
		return nil
	}
	words := append(slices.Clone(c.Allow), refused)
	return &refusedError{
		refused, "the case runs a program with it", "on that host: rdmarun agent --allow " + strings.Join(words, ","),
	}
}

// answer reports whether an order can be executed.
func answer(said *bus.Message, err error) {
	var done lab.Done
	if err != nil {
		done.Error = err.Error()
		var hinted interface{ Hint() string }
		if errors.As(err, &hinted) {
			done.Hint = hinted.Hint()
		}
	}
	if raw, err := json.Marshal(done); err == nil {
		_ = said.Respond(raw)
	}
}

// do does an order: it prepares all, answers, and plays its roles.
func do(ctx context.Context, conn *bus.Conn, config Config, said *bus.Message) (err error) {
	var order lab.Order
	if err := json.Unmarshal(said.Data, &order); err != nil {
		answer(said, fmt.Errorf("the order cannot be read: %w", err))
		return err
	}
	r := &run{order: &order, conn: conn, config: config}
	if err := r.prepare(ctx); err != nil {
		answer(said, err)
		return nil // the controller has it
	}
	defer func() {
		err = errors.Join(err, r.close())
		r.files.close()
	}()
	if order.Capture != nil {
		packets, bad := capture.Send(*order.Capture, "rdmarun "+config.Version, r.send)
		if bad != nil {
			answer(said, bad)
			return nil
		}
		r.settings.Capture = packets.Capture()
		defer func() { err = errors.Join(err, packets.Close()) }()
	}
	if order.OnFailure != nil {
		r.settings.OnFailure = capture.SendFailures(*order.OnFailure, "rdmarun "+config.Version, r.send)
	}
	if order.Trace != nil {
		calls := capture.SendCalls(*order.Trace, r.send)
		ended, bad := config.Trace(calls, order.Trace.Functions, &r.settings)
		if bad != nil {
			answer(said, bad)
			return nil
		}
		defer func() { calls.Close(ended()) }()
	}
	answer(said, nil)
	return r.play(ctx)
}

// run is the agent's part of a run.
type run struct {
	order     *lab.Order
	conn      *bus.Conn
	config    Config
	scenarios []scenario.Scenario
	cases     []scenario.Selected
	settings  scenario.RunConfig
	files     files
	close     func() error
}

// prepare has the files brought, and gets ready.
func (r *run) prepare(ctx context.Context) error {
	err := r.fetch(ctx)
	if err != nil {
		return fmt.Errorf("have the scenarios brought: %w", err)
	}
	return r.ready(ctx)
}

// ready looks whether this host can do what is asked, of which it has the files.
func (r *run) ready(ctx context.Context) (err error) {
	order := r.order
	params := scenario.Params{
		Given: order.Given, Environment: order.Environment, Hosts: func(role string) int { return order.Hosts[role] },
	}
	checked, err := scenario.CheckIn(ctx, r.files.locate(order.Files), order.Scenarios, params)
	if err != nil {
		return err
	}
	if found := checked.Errors.Sorted(); checked.Errors.Len() > 0 {
		return fmt.Errorf("the scenarios are wrong here: %w", found[0])
	}
	wanted := make(map[string]bool)
	for _, id := range order.Cases {
		wanted[id] = true
	}
	r.scenarios = checked.Scenarios
	selection := scenario.Selection{Only: func(id string) bool { return wanted[id] }}
	if r.cases, err = scenario.Select(checked.Scenarios, selection); err != nil {
		return err
	}
	r.settings = scenario.RunConfig{
		ProviderName: order.Provider, FilesChoose: order.FilesChoose, Link: order.Link, Legal: order.Legal,
		Selection: selection,
		Seed:      order.Seed, Drawn: order.Drawn, TimeScale: order.TimeScale, Stall: order.Stall,
		Interval:     order.Interval,
		NoThresholds: order.NoThresholds,
		GuestCache:   r.config.GuestCache, GuestCompiler: r.config.GuestCompiler, Confine: r.config.Confine,
		Warn: r.config.Warn, ProgramEnvironment: r.config.Environment, AllowProgram: r.config.refuseProgram,
		Allow: func(need scenario.Need) error {
			if refused := r.config.refuse(need.What, need.For); refused != nil {
				return refused
			}
			return nil
		},
	}
	if err := r.allowed(); err != nil {
		return err
	}
	if r.close, err = r.config.Open(order.Provider, &r.settings); err != nil {
		return err
	}
	r.settings.Places = r.places()
	return nil
}

// sendTimeout bounds how long the controller may take to answer a message.
const sendTimeout = 10 * time.Second

// send sends a message to the controller, and waits until the controller has it.
func (r *run) send(what string, data []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), sendTimeout) // the end of a run is sent, too
	defer cancel()
	_, err := r.conn.Request(ctx, bus.From(r.conn.Name(), what), data)
	return err
}

// allowed looks whether the owner of this host allows what is asked of it.
func (r *run) allowed() error {
	participant := &scenario.Participant{Roles: r.order.Roles}
	for _, each := range r.cases {
		for _, need := range participant.Needs(&r.settings, each) {
			if err := r.config.refuse(need.What, need.For); err != nil {
				return err
			}
		}
	}
	if err := r.config.refuse(r.order.Provider, "the run is on it"); err != nil && r.order.Provider != rdmacore.Soft {
		return err // what opens soft are the roles on it
	}
	return nil
}

// play meets the others and runs the cases that the controller hands out.
func (r *run) play(ctx context.Context) error {
	order := r.order
	participant := &scenario.Participant{
		Roles: order.Roles, Addresses: order.Addresses, ControllerName: order.Controller,
		MeetingConfig: meeting.Config{Name: order.Process, Bus: r.conn, Silence: order.Silence},
	}
	waiting, cancel := context.WithTimeout(ctx, meetTime)
	defer cancel()
	if err := participant.Meet(waiting, r.cases); err != nil {
		select {
		case <-r.conn.Closed(): // the controller, which cannot begin, says why
			return nil
		default:
			return err
		}
	}
	defer participant.Close()
	r.settings.Participant = participant
	r.settings.Consumers = []record.Consumer{&reporter{ctx: ctx, participant: participant, wants: order.Wants}}
	_, err := scenario.Run(ctx, r.scenarios, r.settings)
	return err
}

// reporter passes records on to the controller.
type reporter struct {
	ctx         context.Context
	participant *scenario.Participant
	wants       []record.Kind
}

// Wants implements record.Consumer.
func (r *reporter) Wants(kind record.Kind) bool { return slices.Contains(r.wants, kind) }

// Record implements record.Consumer.
func (r *reporter) Record(each *record.Record) error {
	if !each.Reportable() {
		return nil
	}
	return r.participant.Report(r.ctx, each)
}

// places are where the roles of this host are.  On soft, which would give each an address of this host alone, they take
// one that others reach.
func (r *run) places() map[string]scenario.Place {
	places := make(map[string]scenario.Place, len(r.order.Places))
	for role, place := range r.order.Places {
		places[role] = place
	}
	if !r.order.Route || r.order.Provider != rdmacore.Soft {
		return places
	}
	address := Routed()
	if !address.IsValid() {
		return places
	}
	for _, role := range r.order.Roles {
		if place := places[role]; place.GID == "" {
			place.GID = address.String()
			places[role] = place
		}
	}
	return places
}

// Routed is the first address of this host that other hosts may use. An interface with a carrier comes before one
// without, one that is up before one that is down, and IPv4 before IPv6.
func Routed() (found netip.Addr) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return found
	}
	best := -1
	for _, each := range interfaces {
		addresses, _ := each.Addrs() // an interface that has gone has none
		for _, own := range addresses {
			prefix, err := netip.ParsePrefix(own.String())
			if err != nil || !prefix.Addr().IsGlobalUnicast() {
				continue
			}
			address, rank := prefix.Addr().Unmap(), 0
			for i, is := range []bool{address.Is4(), each.Flags&net.FlagUp != 0, each.Flags&net.FlagRunning != 0} {
				if is {
					rank += 1 << i
				}
			}
			if rank > best {
				found, best = address, rank
			}
		}
	}
	return found
}
