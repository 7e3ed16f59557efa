package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdmarun/host/bus/bustest"
)

// standing is a lab of two agents that wait on a NATS server.
type standing struct {
	server            *bustest.Server
	agents            []*overLab
	long, loop, short string // scenarios
}

const twoRoles = "rdmarun: v1\nroles: {server: {}, client: {}}\ntimeout: 20m\nsteps:\n" +
	"  - {role: server, log: it waits}\n"

func startStanding(t *testing.T) *standing {
	t.Helper()
	s := &standing{server: bustest.Start(t, bustest.Config{User: "lab", Password: "geheim"})}
	for _, name := range []string{"a", "b"} {
		s.agents = append(s.agents, s.join(t, name))
	}
	folder := t.TempDir()
	write := func(name, steps string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(twoRoles+steps), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	s.long = write("long.yaml", "  - {role: client, sleep: 10m}\n  - {role: server, log: never}\n")
	s.loop = write(
		"loop.yaml",
		"  - repeat: 1000000\n    as: i\n    do:\n      - {role: client, sleep: 1ms}\n"+
			"      - {role: client, if: $(i == 1), log: it goes round}\n  - {role: server, log: never}\n",
	)
	s.short = write("short.yaml", "  - {role: client, sleep: 2s}\n  - {role: server, log: at last}\n")
	return s
}

// join has an agent wait.
func (s *standing) join(t *testing.T, name string) *overLab {
	t.Helper()
	agent := startRdmarun(t, "agent", "--join", s.server.URL("lab:geheim"), "--name", name)
	agent.await(t, "waits on")
	return agent
}

// await waits until it has said something.
func (o *overLab) await(t *testing.T, what string) {
	t.Helper()
	for end := time.Now().Add(programPatience); !strings.Contains(o.output.String(), what); time.Sleep(
		10 * time.Millisecond,
	) {
		if time.Now().After(end) {
			t.Fatalf("nothing says %q:\n%s", what, o.output.String())
		}
	}
}

// run starts a run over both agents.
func (s *standing) run(t *testing.T, scenario string, flags ...string) *overLab {
	t.Helper()
	return startOverLab(
		t,
		append([]string{"--nats", s.server.URL("lab:geheim"), "--place", "server=a,client=b", scenario}, flags...)...,
	)
}

// processes are those of the runs that the agents serve.
func (s *standing) processes(t *testing.T) (found []int) {
	t.Helper()
	for _, agent := range s.agents {
		found = append(
			found,
			slices.DeleteFunc(agentsOf(t, agent.Process.Pid), func(pid int) bool {
				return pid == agent.Process.Pid
			})...,
		)
	}
	return found
}

// serves starts a run of long, and waits until it runs.
func (s *standing) serves(t *testing.T) (*overLab, []int) {
	t.Helper()
	return s.servesOf(t, s.long, "it waits")
}

// servesOf starts a run, and waits until it says something.
func (s *standing) servesOf(t *testing.T, scenario, what string) (*overLab, []int) {
	t.Helper()
	run := s.run(t, scenario)
	run.await(t, what)
	processes := s.processes(t)
	if len(processes) != 2 {
		t.Fatalf("the agents have %v", processes)
	}
	return run, processes
}

// TestJoinedLeases: a second run reports the user of the first, or waits for its end.
func TestJoinedLeases(t *testing.T) {
	t.Parallel()
	s := startStanding(t)
	first, processes := s.serves(t)
	said := s.run(t, s.short).ends(t, exitEnvironment)
	if !strings.Contains(said, "host a: its agent serves "+holder()[:strings.IndexByte(holder(), '(')]) ||
		!strings.Contains(said, "hint: --wait DURATION") {
		t.Errorf("%s", said)
	}
	second := s.run(t, s.short, "--wait", "5m")
	second.await(t, "this run waits for at most 5m")
	if err := first.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	first.ends(t, exitInterrupted)
	second.ends(t, exitOK)
	awaitEnds(t, append(processes, s.processes(t)...))
}

// TestJoinedBreaks: what breaks is named, and the agents serve the next run.
func TestJoinedBreaks(t *testing.T) {
	for name, test := range map[string]struct {
		breaks func(t *testing.T, s *standing, run *overLab, processes []int)
		want   []string // one of them
	}{
		"controller killed": {func(t *testing.T, _ *standing, run *overLab, _ []int) {
			if err := run.Process.Kill(); err != nil {
				t.Error(err)
			}
		}, nil},
		"process killed": {func(t *testing.T, _ *standing, _ *overLab, processes []int) {
			if err := syscall.Kill(processes[0], syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}, []string{"has ended unexpectedly (signal: killed)"}},
		"process stopped": {func(t *testing.T, _ *standing, _ *overLab, processes []int) {
			if err := syscall.Kill(processes[1], syscall.SIGSTOP); err != nil {
				t.Error(err)
			}
		}, []string{"says nothing for 4.5s"}},
		"server away": {func(t *testing.T, s *standing, run *overLab, _ []int) {
			s.server.Stop()
			_ = run.Wait()
			s.server.Start()
		}, []string{"says nothing for 4.5s", "is away for 4.5s"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startStanding(t)
			run, processes := s.serves(t)
			test.breaks(t, s, run, processes)
			if test.want == nil {
				_ = run.Wait()
			} else if said := run.ends(t, exitEnvironment); !slices.ContainsFunc(test.want, func(want string) bool {
				return strings.Contains(said, want)
			}) {
				t.Errorf("nothing says %q:\n%s", test.want, said)
			}
			awaitEnds(t, processes)
			for { // an agent may have to find its server first
				next := s.run(t, s.short, "--wait", "1m")
				_ = next.Wait()
				if said := next.output.String(); strings.Contains(said, "no agent") ||
					strings.Contains(said, "no host") {
					continue
				}
				next.ends(t, exitOK)
				break
			}
		})
	}
}

// TestJoinedLoopBreaks: the end of a process that runs a loop as a whole is reported. So is that of a process which
// only waits for the loop. Without that, the others would not notice it before the loop has ended.
func TestJoinedLoopBreaks(t *testing.T) {
	for name, test := range map[string]struct {
		which int
		how   syscall.Signal
		want  string
	}{
		"its process killed":     {1, syscall.SIGKILL, "the process of b has ended unexpectedly (signal: killed)"},
		"its process stopped":    {1, syscall.SIGSTOP, "the process of b says nothing for 4.5s"},
		"another process killed": {0, syscall.SIGKILL, "the process of a has ended unexpectedly (signal: killed)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startStanding(t)
			run, processes := s.servesOf(t, s.loop, "it goes round")
			if err := syscall.Kill(processes[test.which], test.how); err != nil {
				t.Fatal(err)
			}
			if said := run.ends(t, exitEnvironment); !strings.Contains(said, test.want) ||
				strings.Contains(said, "never") {
				t.Errorf("nothing says %q:\n%s", test.want, said)
			}
			awaitEnds(t, processes)
			s.run(t, s.short, "--wait", "1m").ends(t, exitOK)
		})
	}
}

// TestJoinedServerRestarts: a run goes on when its server comes back soon.
func TestJoinedServerRestarts(t *testing.T) {
	t.Parallel()
	s := startStanding(t)
	run := s.run(t, s.short)
	run.await(t, "it waits")
	s.server.Stop()
	s.server.Start()
	run.ends(t, exitOK)
}

// TestJoinedAgentStops: a run reports that its agent was stopped, and the agent leaves nothing.
func TestJoinedAgentStops(t *testing.T) {
	t.Parallel()
	s := startStanding(t)
	run, processes := s.serves(t)
	if err := s.agents[1].Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if said := run.ends(t, exitEnvironment); !strings.Contains(said, "host b: the agent is stopped") {
		t.Errorf("%s", said)
	}
	s.agents[1].ends(t, exitOK)
	awaitEnds(t, processes)
}

// TestJoinedAgentKilled: a run reports that its agent was killed. Nothing is left, and another agent of its name serves
// the next run.
func TestJoinedAgentKilled(t *testing.T) {
	t.Parallel()
	s := startStanding(t)
	run, processes := s.serves(t)
	if err := s.agents[0].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if said := run.ends(t, exitEnvironment); !strings.Contains(said, "the process of a ") {
		t.Errorf("%s", said)
	}
	awaitEnds(t, processes)
	_ = s.agents[0].Wait()
	s.agents[0] = s.join(t, "a")
	s.run(t, s.short, "--wait", "1m").ends(t, exitOK)
}
