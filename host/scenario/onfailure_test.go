package scenario_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"rdmarun/host/bus"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/meeting"
	"rdmarun/rdmacore"
)

// verdicts are what a process keeps packets for: a line for each run of a case.
type verdicts struct {
	mu   sync.Mutex
	said []string
}

// keeping is one run of a case there.
type keeping struct {
	to   *verdicts
	what string
}

func (v *verdicts) Begin(id string, number int, processes []string) (scenario.Recording, error) {
	return &keeping{
		v, fmt.Sprintf("%s %d %s", id[strings.LastIndex(id, ":")+1:], number, strings.Join(processes, "+")),
	}, nil
}

func (*keeping) Capture() *rdmacore.Capture { return nil }
func (*keeping) Failed(uint64)              {}

func (k *keeping) End(failed bool) (string, error) {
	k.to.mu.Lock()
	defer k.to.mu.Unlock()
	k.to.said = append(k.to.said, fmt.Sprintf("%s: failed %t", k.what, failed))
	return map[bool]string{true: "kept/" + k.what}[failed], nil
}

// TestVerdicts: the process that leads sends the failed cases to processes that keep packets. It also sends those that
// only it knows: with --strict a skip has failed.
func TestVerdicts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "case.yaml")
	text := "rdmarun: v1\nroles: {server: {}, client: {}}\ncases:\n" +
		"  - {name: good, steps: [{role: client, log: x}]}\n" +
		"  - {name: bad, steps: [{role: client, log: x}, {assert: $(1 == 2)}]}\n" +
		"  - {name: known, xfail: {reason: a bug}, steps: [{assert: $(1 == 2)}]}\n" +
		"  - {name: skipped, requires: [server.provider.verbs], steps: [{log: never}]}\n" +
		"  - {name: server's, steps: [{role: server, log: x}]}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const leader = "the controller"
	server, err := bus.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	players := map[string]string{"server": "server", "client": "client"}
	controller := &scenario.Participant{
		Controller:    &scenario.Controller{Players: players},
		MeetingConfig: meeting.Config{Name: leader, Server: server, Members: make(map[string]string)},
	}
	participants := []*scenario.Participant{controller}
	for _, role := range []string{"server", "client"} {
		who := bus.NewCredentials()
		here, there := net.Pipe()
		go func() { _ = server.Serve(t.Context(), who, here) }()
		conn, err := bus.Over(who, there)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Close)
		controller.MeetingConfig.Members[who.Name] = role
		participants = append(participants, &scenario.Participant{
			Roles: []string{role}, ControllerName: leader, MeetingConfig: meeting.Config{Name: role, Bus: conn},
		})
	}
	kept, seen := make([]verdicts, len(participants)), newRoleRecords()
	var running sync.WaitGroup
	for i, participant := range participants {
		running.Go(func() {
			err := play(t.Context(), path, participant, func(config *scenario.RunConfig) bool {
				config.OnFailure, config.Strict = &kept[i], i == 0
				if i == 0 {
					config.Consumers = []record.Consumer{seen}
				}
				return true
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	for i := range participants {
		var want []string
		for _, each := range []string{
			"good 0 %s: failed false", "bad 0 %s: failed true", "known 0 %s: failed false", "skipped 0 %s: failed true",
			"server's 0 %s: failed false",
		} {
			want = append(want, fmt.Sprintf(each, "server+client"))
		}
		if !slices.Equal(kept[i].said, want) {
			t.Errorf("%d: %q\nnot %q", i, kept[i].said, want)
		}
	}
	if got := seen.results["skipped"].Capture; got != "kept/skipped 0 server+client" {
		t.Errorf("the end of the case names %q", got)
	}
}
