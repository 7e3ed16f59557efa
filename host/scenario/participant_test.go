package scenario_test

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/meeting"
	"rdmarun/internal/address"
)

// process is what one of several has seen.
type process struct {
	*roleRecords
	err error
}

// joinFirst lets parties meet: the first waits, the others come to it.
func joinFirst(t *testing.T, participants []*scenario.Participant) {
	t.Helper()
	at := address.Free(t)
	for i, participant := range participants {
		if i == 0 {
			participant.MeetingConfig.Listen = at
		} else {
			participant.MeetingConfig.Peers = []string{at}
		}
	}
}

// together runs a file in several parties at once, of which the first waits for the others.
func together(t *testing.T, path string, participants ...*scenario.Participant) []process {
	t.Helper()
	joinFirst(t, participants)
	found := make([]process, len(participants))
	var running sync.WaitGroup
	for i, participant := range participants {
		running.Go(func() {
			p := &found[i]
			p.roleRecords = newRoleRecords()
			p.err = play(t.Context(), path, participant, func(config *scenario.RunConfig) bool {
				config.Consumers = []record.Consumer{p}
				return true
			})
		})
	}
	running.Wait()
	return found
}

// TestParticipants: two processes that share the roles of a file come to the same result as one that has all of them.
func TestParticipants(t *testing.T) {
	want := map[string]record.Status{
		"results": record.Passed, "loops and branches": record.Passed, "a failure is everybody's": record.Failed,
		"known to fail":        record.XFailed,
		"a step known to fail": record.Passed, "skipped by one": record.Skipped,
		"after a leftover of one": record.Failed,
		"loops of one role":       record.Passed, "ends of loops": record.Passed, "a failure in a loop": record.Failed,
		"a loop without end": record.Failed,
	}
	const path = "testdata/run/party.yaml"
	alone := newRoleRecords()
	if _, err := scenario.Run(t.Context(), load(t, nil, path), scenario.RunConfig{
		ProviderName: "soft", Consumers: []record.Consumer{alone},
	}); err != nil {
		t.Fatal(err)
	}
	for name, participants := range map[string][]*scenario.Participant{
		"two":              {{Roles: []string{"server"}}, {Roles: []string{"client"}}},
		"the client waits": {{Roles: []string{"client"}}, {Roles: []string{"server"}}},
		"three, one an instance": {
			{Roles: []string{"server"}}, {Roles: []string{"client[1]"}}, {Roles: []string{"client[0]"}},
		},
		"one has nothing to say": {{Roles: []string{"server", "client[1]"}}, {Roles: []string{"client[0]"}}},
	} {
		t.Run(name, func(t *testing.T) {
			processes := append(together(t, path, participants...), process{roleRecords: alone})
			for i, each := range processes {
				if each.err != nil {
					t.Fatalf("%d: %v", i, each.err)
				}
				got := make(map[string]record.Status)
				for name, result := range each.results {
					got[name] = result.Status
				}
				if !maps.Equal(got, want) {
					t.Errorf("%d: %+v", i, each.results)
				}
				failed := each.results["a failure is everybody's"]
				if len(failed.Failures) != 1 || failed.Failures[0].Action != "check" ||
					failed.Failures[0].Role != "server" || failed.Failures[0].Line != 59 {
					t.Errorf("%d: %+v", i, failed.Failures)
				}
				if reason := each.results["skipped by one"].Reason; !strings.Contains(
					reason, "it requires server.provider.verbs",
				) {
					t.Errorf("%d: %s", i, reason)
				}
				loops, same := each.results["loops of one role"], alone.results["loops of one role"]
				finally := 2 // steps, which only one has had
				if loops.Steps != same.Steps && loops.Steps != same.Steps-finally || len(loops.Loops) != 1 ||
					loops.Loops[0].Name != "outer" || loops.Loops[0].Rounds != 3 {
					t.Errorf("%d: %d steps, loops %+v; alone %d steps", i, loops.Steps, loops.Loops, same.Steps)
				}
				failures, sames := each.results["a failure in a loop"].Failures,
					alone.results["a failure in a loop"].Failures
				if len(failures) != 1 || len(sames) != 1 || failures[0].Line != sames[0].Line ||
					failures[0].Action != sames[0].Action || failures[0].Role != sames[0].Role ||
					!slices.Equal(failures[0].Path, sames[0].Path) || !slices.Equal(failures[0].Used, sames[0].Used) ||
					failures[0].What != sames[0].What {
					t.Errorf("%d: %+v, alone %+v", i, failures, sames)
				}
				left := each.results["after a leftover of one"].Failures
				if len(left) != 1 || left[0].Kind != "leftover" {
					t.Errorf("%d: %+v", i, left)
				}
			}
		})
	}
}

// TestParticipantFault: one of two processes makes the fault of the link between them, on what it sends and
// receives. No process frees anything before the other has looked for unread events.
func TestParticipantFault(t *testing.T) {
	const path = "testdata/run/party_fault.yaml"
	for i, each := range together(
		t, path, &scenario.Participant{Roles: []string{"server"}}, &scenario.Participant{Roles: []string{"client"}},
	) {
		if each.err != nil {
			t.Fatalf("%d: %v", i, each.err)
		}
		want := map[string]record.Status{
			"what comes": record.Passed, "what the peer of a step has left": record.Passed,
			"what is sent": record.Passed, "in a loop of one role": record.Passed,
		}
		for name, result := range each.results {
			if result.Status != want[name] {
				t.Errorf("%d: %s: %+v", i, name, result)
			}
			delete(want, name)
		}
		if len(want) > 0 {
			t.Errorf("%d: did not run: %v", i, want)
		}
	}
}

// TestParticipantPlan: processes that do not run the same do not begin.
func TestParticipantPlan(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"a buffer of another": {
			"roles: {server: {buffers: {rx: {size: 8}}}, client: {}}\n" +
				"steps: [{role: client, check: {buffer: server.rx, all: 0}}]\n",
			"check works on client and server, which are in two processes: instead of buffer: server.rx, write " +
				"{role: server, check: {buffer: rx, ..}}",
		},
		"a comparison with a buffer of another": {
			"roles: {server: {buffers: {rx: {size: 8}}}, client: {buffers: {tx: {size: 8}}}}\n" +
				"steps: [{role: server, check: {buffer: rx, equals: client.tx}}]\n",
			"check works on server and client, which are in two processes: instead of equals: client.tx, write " +
				"its bytes (equals: {text: ..}, or all: N), or name a buffer of server with the same data",
		},
		"an island": {
			"roles: {server: {}, client: {}}\nsteps: [{role: client, create_ep: {to: server, port: 7471}, as: ep}]\n",
			"client and server are in two processes, and server, on soft (link local), reaches only " +
				"its own roles: --link udp",
		},
		"ends of a measurement": {
			"roles: {server: {}, client: {}}\nsteps: [{measure: {kind: latency, op: SEND, from: client, to: server, " +
				"sizes: [64], iterations: 10}}]\n",
			"client and server are in two processes, and server, on soft (link local), reaches only " +
				"its own roles: --link udp",
		},
		"another role": {"roles: {client: {}}\nsteps: [{log: x}]\n", `no selected case has a role "server"`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "case.yaml")
			if err := os.WriteFile(path, []byte("rdmarun: v1\n"+test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			config := scenario.RunConfig{ProviderName: "soft"}
			cases, err := scenario.Select(load(t, nil, path), config.Selection)
			if err != nil {
				t.Fatal(err)
			}
			participant := &scenario.Participant{
				Roles: []string{"server"}, Addresses: map[string]netip.Addr{"client": {}},
			}
			if err := participant.Check(&config, cases); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestParticipantEnds: when the process of another role ends the case, or itself, the others report that at once.
func TestParticipantEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "case.yaml")
	text := "rdmarun: v1\nroles: {server: {}, client: {}}\ncases:\n  - name: long\n" +
		"    steps: [{role: server, sleep: 1h}, {role: client, log: x}]\n    timeout: 2h\n" +
		"  - {name: next, steps: [{role: client, log: x}]}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		stop bool // the server's run, in its first case; else it begins none
		want [2]string
	}{
		"in a case": {
			true, [2]string{"the process of server has ended the case", "the process of server has ended its run"},
		},
		"before a case": {
			false, [2]string{"the process of server has ended its run", "the process of server has ended its run"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := &scenario.Participant{
				Roles: []string{"server"}, MeetingConfig: meeting.Config{Listen: address.Free(t)},
			}
			done := make(chan error)
			go func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done <- play(ctx, path, server, func(config *scenario.RunConfig) bool {
					config.Consumers = []record.Consumer{endsCase(cancel)}
					return test.stop
				})
			}()
			seen := newRoleRecords()
			err := play(t.Context(), path, &scenario.Participant{
				Roles: []string{"client"}, MeetingConfig: meeting.Config{Peers: []string{server.MeetingConfig.Listen}},
			}, func(config *scenario.RunConfig) bool {
				config.Consumers = []record.Consumer{seen}
				return true
			})
			if other := <-done; err != nil || other != nil {
				t.Fatal(err, other)
			}
			for i, name := range []string{"long", "next"} {
				result := seen.results[name]
				if result.Status.OK() ||
					!slices.ContainsFunc(result.Failures, func(f record.Failure) bool {
						return strings.Contains(f.What, test.want[i])
					}) {
					t.Errorf("%s: %+v", name, result)
				}
			}
		})
	}
}

// endsCase stops a run once a case has begun.
type endsCase func()

func (endsCase) Wants(kind record.Kind) bool { return kind == record.CaseStart }

func (stop endsCase) Record(*record.Record) error {
	stop()
	return nil
}

// play runs a file as a party, unless run says that it only comes.
func play(
	ctx context.Context, path string, participant *scenario.Participant, run func(*scenario.RunConfig) bool,
) error {
	checked := scenario.Check([]string{path}, scenario.Params{})
	if checked.Errors.Len() > 0 {
		return fmt.Errorf("%v", checked.Errors.Sorted())
	}
	scenarios := checked.Scenarios
	config := scenario.RunConfig{ProviderName: "soft", Participant: participant}
	runs := run(&config)
	cases, err := scenario.Select(scenarios, config.Selection)
	if err == nil {
		err = participant.Check(&config, cases)
	}
	if err != nil {
		return err
	}
	meeting, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := participant.Meet(meeting, cases); err != nil {
		return err
	}
	defer participant.Close()
	if runs {
		_, err = scenario.Run(ctx, scenarios, config)
	}
	return err
}

// TestParticipantCounters: a process that does not play a role has no numbers of its counters, and reports that where
// they are used.
func TestParticipantCounters(t *testing.T) {
	processes := together(
		t, "testdata/run/party_counters.yaml", &scenario.Participant{Roles: []string{"server"}},
		&scenario.Participant{Roles: []string{"client"}},
	)
	for i, each := range processes {
		if each.err != nil || len(each.results) != 3 {
			t.Fatalf("%d: %v, %+v", i, each.err, each.results)
		}
		for name, result := range each.results {
			switch {
			case name == "in a step of its role" && result.Status == record.Passed:
			case name != "in a step of its role" && len(result.Failures) == 1 &&
				strings.Contains(result.Failures[0].Got, "give the step that role"):
			default:
				t.Errorf("%d: %s: %+v", i, name, result)
			}
		}
	}
}
