// Package control is the controller of a lab. It starts an agent on each host, gives each its part of a run, and
// removes everything of them at the end.
package control

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"rdmarun/host/bus"
	"rdmarun/host/lab"
	"rdmarun/host/lab/launch"
	"rdmarun/host/record"
)

// Controller is the controller of a run, with its agents.
type Controller struct {
	server *bus.Server
	conn   *bus.Conn
	agents []*launch.Agent
	serve  context.CancelFunc
	served sync.WaitGroup

	mu     sync.Mutex
	lost   map[string]bool // hosts with agents that are gone
	pack   []byte
	digest string
}

// launchAtOnce bounds the hosts that are started at once: each may be an ssh that computes keys.
const launchAtOnce = 32

// lastWordsTime bounds the wait for the last output of a lost agent's launcher.
const lastWordsTime = 500 * time.Millisecond

// Start starts an agent on each host.  The error has a HostError for each that did not start; the controller has the
// others.
func Start(ctx context.Context, hosts []lab.Host, config launch.Config) (*Controller, error) {
	c := &Controller{lost: make(map[string]bool)}
	var err error
	if c.server, err = bus.NewServer(); err != nil {
		return nil, err
	}
	if c.conn, err = c.server.Connect(); err != nil {
		c.server.Close()
		return nil, err
	}
	agents, failures := lease(ctx, hosts, config)
	room := make(chan struct{}, launchAtOnce)
	awaited := await(hosts, config.Waits)
	var starting sync.WaitGroup
	for i, host := range hosts {
		if failures[i] != nil {
			awaited.come(i) // stop waiting for it
			continue
		}
		starting.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			defer awaited.come(i)
			var err error
			if leased := agents[i]; leased == nil {
				agents[i], err = launch.Start(ctx, host, config)
			} else if err = leased.Greet(ctx, config.Version); err != nil {
				agents[i] = nil
			}
			if err != nil {
				failures[i] = &HostError{host.Name, err}
			}
		})
	}
	starting.Wait()
	awaited.over()
	c.agents = slices.DeleteFunc(agents, func(a *launch.Agent) bool { return a == nil })
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.serve = cancel
	for _, agent := range c.agents {
		c.served.Go(func() { _ = c.server.Serve(serving, agent.Who, agent.Stream()) })
	}
	if _, err := c.conn.Listen(c.servePart, bus.From("*", lab.SubjectPart)); err != nil {
		c.Close()
		return nil, err
	}
	return c, errors.Join(failures...)
}

// awaited are the hosts that have not started yet.  It reports them after firstNews, and then after twice as long each
// time.
type awaited struct {
	hosts  []lab.Host
	report func(come, hosts int, missing []string)

	mu      sync.Mutex // guards the fields below
	missing map[int]bool
	timer   *time.Timer
}

const firstNews = 2 * time.Second

func await(hosts []lab.Host, report func(come, hosts int, missing []string)) *awaited {
	a := &awaited{hosts: hosts, report: report, missing: make(map[int]bool)}
	for i := range hosts {
		a.missing[i] = true
	}
	if report != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.news(firstNews)
	}
	return a
}

// news reports the missing hosts after a time.  The caller holds the lock.
func (a *awaited) news(after time.Duration) {
	a.timer = time.AfterFunc(after, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.missing) == 0 {
			return
		}
		var missing []string
		for i, host := range a.hosts {
			if a.missing[i] {
				missing = append(missing, host.Name)
			}
		}
		a.report(len(a.hosts)-len(missing), len(a.hosts), missing)
		a.news(2 * after)
	})
}

func (a *awaited) come(i int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.missing, i)
}

func (a *awaited) over() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.missing)
	if a.timer != nil {
		a.timer.Stop()
	}
}

// lease takes the agents that have joined the lab, in the order of their names. Two runs that take the same agents
// must not block each other.
func lease(ctx context.Context, hosts []lab.Host, config launch.Config) (agents []*launch.Agent, failures []error) {
	agents, failures = make([]*launch.Agent, len(hosts)), make([]error, len(hosts))
	var joined []int
	for i, host := range hosts {
		if host.Join != "" {
			joined = append(joined, i)
		}
	}
	slices.SortFunc(joined, func(i, j int) int { return strings.Compare(hosts[i].Join, hosts[j].Join) })
	for _, i := range joined {
		var err error
		if agents[i], err = launch.Lease(ctx, hosts[i], config); err != nil {
			failures[i] = &HostError{hosts[i].Name, err}
		}
	}
	return agents, failures
}

// Hosts are the hosts with an agent.
func (c *Controller) Hosts() (hosts []lab.Host) {
	for _, agent := range c.agents {
		hosts = append(hosts, agent.Host)
	}
	return hosts
}

// Keep ends the agents of all other hosts.
func (c *Controller) Keep(hosts []lab.Host) {
	var ending sync.WaitGroup
	c.agents = slices.DeleteFunc(c.agents, func(agent *launch.Agent) bool {
		wanted := slices.ContainsFunc(hosts, func(h lab.Host) bool { return h.Name == agent.Host.Name })
		if !wanted {
			ending.Go(func() { _, _ = agent.End(false) }) // these hosts are not part of the run
		}
		return !wanted
	})
	ending.Wait()
}

// Examine makes each host report about itself and the devices of its roles.
func (c *Controller) Examine(ctx context.Context, look func(lab.Host) lab.Look) map[string]lab.Examined {
	var mu sync.Mutex
	found := make(map[string]lab.Examined)
	var asking sync.WaitGroup
	for _, agent := range c.agents {
		asking.Go(func() {
			there := lab.Examined{}
			what, err := json.Marshal(look(agent.Host))
			var answer []byte
			if err == nil {
				answer, err = c.question(ctx, agent, lab.SubjectExamine, what)
			}
			if silent := (*silentError)(nil); errors.As(err, &silent) {
				there.Error = silent.Error() + "; " + silent.Hint()
			} else if err != nil {
				there.Error = "it does not answer: " + orNothingPrinted(agent.LastWords())
			} else if there, err = lab.ParseExamined(answer); err != nil {
				there.Error = err.Error()
			}
			mu.Lock()
			defer mu.Unlock()
			found[agent.Host.Name] = there
		})
	}
	asking.Wait()
	return found
}

// Server is the bus of the agents.
func (c *Controller) Server() *bus.Server { return c.server }

// Members are the names of the hosts, by those of their agents on the bus.
func (c *Controller) Members() map[string]string {
	names := make(map[string]string)
	for _, agent := range c.agents {
		names[agent.Who.Name] = agent.Host.Name
	}
	return names
}

// Handle calls take with messages of agents under some subjects, and answers them afterwards.
func (c *Controller) Handle(take func(host, what string, data []byte), what ...string) error {
	members := c.Members()
	subjects := make([]string, len(what))
	for i, each := range what {
		subjects[i] = bus.From("*", each)
	}
	_, err := c.conn.Listen(func(msg *bus.Message) {
		if id := bus.Sender(msg.Subject); members[id] != "" {
			take(members[id], strings.TrimPrefix(msg.Subject, bus.From(id, "")), msg.Data)
		}
		_ = msg.Respond(nil) // the agent may be gone
	}, subjects...)
	return err
}

// Gone reports whether the agent of a host is gone.
func (c *Controller) Gone(host string) bool {
	c.mu.Lock()
	lost := c.lost[host]
	c.mu.Unlock()
	i := slices.IndexFunc(c.agents, func(a *launch.Agent) bool { return a.Host.Name == host })
	return lost || i < 0 || c.agents[i].HasEnded()
}

// servePart answers a request for a part of the pack.
func (c *Controller) servePart(msg *bus.Message) {
	c.mu.Lock()
	pack, digest := c.pack, c.digest
	c.mu.Unlock()
	var question lab.Part
	if json.Unmarshal(msg.Data, &question) != nil || question.Pack != digest || question.Offset < 0 ||
		question.Offset > len(pack) {
		_ = msg.Respond(nil)
		return
	}
	_ = msg.Respond(pack[question.Offset:min(question.Offset+lab.PartBytes, len(pack))])
}

// Order sends each host its part of a run, with the pack of its files, and waits until all are ready.
func (c *Controller) Order(ctx context.Context, pack []byte, order func(host lab.Host) lab.Order) error {
	digest := fmt.Sprintf("%x", sha256.Sum256(pack))
	c.mu.Lock()
	c.pack, c.digest = pack, digest
	c.mu.Unlock()
	failures := make([]error, len(c.agents))
	var asking sync.WaitGroup
	for i, agent := range c.agents {
		asking.Go(func() {
			what := order(agent.Host)
			what.Pack, what.Length = digest, len(pack)
			if err := c.ask(ctx, agent, what); err != nil {
				failures[i] = &HostError{agent.Host.Name, err}
			}
		})
	}
	asking.Wait()
	return errors.Join(failures...)
}

// HostError is the reason why a host cannot take part in a run.
type HostError struct {
	Host string
	Err  error
}

func (e *HostError) Error() string { return "host " + e.Host + ": " + e.Err.Error() }
func (e *HostError) Unwrap() error { return e.Err }

// Hint is the remedy; empty when there is none.
func (e *HostError) Hint() string {
	var hinted interface{ Hint() string }
	if errors.As(e.Err, &hinted) {
		return hinted.Hint()
	}
	return ""
}

// refusedError is the answer of an agent that cannot execute its order.
type refusedError struct{ text, hint string }

func (e *refusedError) Error() string { return e.text }
func (e *refusedError) Hint() string  { return e.hint }

func (c *Controller) ask(ctx context.Context, agent *launch.Agent, order lab.Order) error {
	raw, err := json.Marshal(order)
	if err != nil {
		return err
	}
	answer, err := c.question(ctx, agent, lab.SubjectOrder, raw)
	silent := (*silentError)(nil)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &silent):
		return silent
	case err != nil:
		return fmt.Errorf("its agent has ended: %s", orNothingPrinted(agent.LastWords()))
	}
	done, err := lab.ParseDone(answer)
	if err != nil {
		return err
	}
	if done.Error != "" {
		return &refusedError{done.Error, done.Hint}
	}
	return nil
}

// silentError means that an agent sends nothing over an intact connection.
type silentError struct{ silence time.Duration }

func (e *silentError) Error() string {
	return fmt.Sprintf("its agent has answered nothing for %v", e.silence)
}

// Hint is the remedy.
func (e *silentError) Hint() string {
	return "if the host is slow, give it more time in the lab file: `silence: 60s`"
}

// question sends a request to an agent, which may take any time while it sends its clock.  Otherwise the error wraps a
// *silentError.
func (c *Controller) question(ctx context.Context, agent *launch.Agent, what string, data []byte) ([]byte, error) {
	asking, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(nil)
	stop := agent.WhenEnded(func() { cancel(nil) })
	defer stop()
	watching.Go(func() { c.watch(asking, agent, func(silent *silentError) { cancel(silent) }) })
	answer, err := c.conn.Await(asking, bus.To(agent.Who.Name, what), data)
	if err != nil {
		err = errors.Join(err, context.Cause(asking))
	}
	return answer, err
}

// watchEvery is the interval of requests for an agent's clock during another request.
const watchEvery = time.Second

// watch calls silent once when an agent does not send its clock for too long.  Such an agent is lost: the controller
// does not wait for its end.
func (c *Controller) watch(asking context.Context, agent *launch.Agent, silent func(*silentError)) {
	silence := cmp.Or(agent.Host.Silence, lab.DefaultSilence)
	lastSeen := time.Now()
	for {
		once, end := context.WithDeadline(asking, lastSeen.Add(silence))
		_, err := c.conn.Await(once, bus.To(agent.Who.Name, lab.SubjectClock), nil)
		end()
		if err == nil {
			lastSeen = time.Now()
		} else if asking.Err() == nil && time.Since(lastSeen) >= silence {
			c.lose(agent.Host.Name)
			silent(&silentError{silence})
			return
		}
		select {
		case <-asking.Done():
			return
		case <-time.After(min(watchEvery, silence/4)):
		}
	}
}

// Watch watches all agents until stop, which returns a HostError for one that was silent meanwhile; the context ends
// when an agent is silent.
func (c *Controller) Watch(ctx context.Context) (watched context.Context, stop func() error) {
	watched, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	for _, agent := range c.agents {
		watching.Go(func() {
			c.watch(watched, agent, func(silent *silentError) { cancel(&HostError{agent.Host.Name, silent}) })
		})
	}
	return watched, func() error {
		cancel(nil)
		watching.Wait()
		var failed *HostError
		if errors.As(context.Cause(watched), &failed) {
			return failed
		}
		return nil
	}
}

// lose marks the agent of a host as gone.
func (c *Controller) lose(host string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost[host] = true
}

func orNothingPrinted(words string) string {
	if words == "" {
		return "it has printed nothing"
	}
	return words
}

// Why adds to the reason why an agent is gone the last output of its launcher.
func (c *Controller) Why(host, why string) string {
	i := slices.IndexFunc(c.agents, func(a *launch.Agent) bool { return a.Host.Name == host })
	if i < 0 {
		return why
	}
	c.lose(host)
	ended := make(chan struct{})
	stop := c.agents[i].WhenEnded(func() { close(ended) })
	defer stop()
	select {
	case <-ended:
	case <-time.After(lastWordsTime):
	}
	if words := c.agents[i].LastWords(); words != "" {
		why += " (" + words + ")"
	}
	return why
}

// clockTime bounds the requests for a host's clock together.
const clockTime = 2 * time.Second

// clockQuestions is the number of requests for a host's clock; the shortest round trip counts.
const clockQuestions = 5

// Clocks returns the clocks of all hosts, compared with this one's.
func (c *Controller) Clocks(ctx context.Context) map[string]record.Clock {
	ctx, cancel := context.WithTimeout(ctx, clockTime)
	defer cancel()
	var mu sync.Mutex
	clocks := make(map[string]record.Clock)
	var asking sync.WaitGroup
	for _, agent := range c.agents {
		asking.Go(func() {
			best := record.Clock{Within: time.Hour}
			for range clockQuestions {
				begin := time.Now()
				answer, err := c.conn.Request(ctx, bus.To(agent.Who.Name, lab.SubjectClock), nil)
				way := time.Since(begin)
				there, bad := strconv.ParseInt(string(answer), 10, 64)
				if err != nil || bad != nil {
					return
				}
				if way/2 < best.Within {
					best = record.Clock{Ahead: time.Unix(0, there).Sub(begin.Add(way / 2)), Within: way / 2}
				}
			}
			mu.Lock()
			defer mu.Unlock()
			clocks[agent.Host.Name] = best
		})
	}
	asking.Wait()
	return clocks
}

// Close ends the agents, and waits for it.  It returns the hosts with killed agents, and a sentence for each host where
// the agent may still run.
func (c *Controller) Close() (killed, left []string) {
	var ending sync.WaitGroup
	var mu sync.Mutex
	for _, agent := range c.agents {
		ending.Go(func() {
			c.mu.Lock()
			lost := c.lost[agent.Host.Name]
			c.mu.Unlock()
			forced, err := agent.End(lost)
			mu.Lock()
			defer mu.Unlock()
			if forced && !lost {
				killed = append(killed, agent.Host.Name)
			}
			if err != nil {
				left = append(left, fmt.Sprintf("host %s: %v", agent.Host.Name, err))
			}
		})
	}
	ending.Wait()
	c.serve()
	c.served.Wait()
	c.conn.Close()
	c.server.Close()
	slices.Sort(killed)
	slices.Sort(left)
	return killed, left
}
