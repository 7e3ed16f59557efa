package scenario_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"rdmarun/host/bus"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/meeting"
)

// stuckOutput is an output that is not read until it goes on.
type stuckOutput struct {
	goOn    chan bool
	records []record.Record
}

func (*stuckOutput) Wants(record.Kind) bool { return true }

func (s *stuckOutput) Record(r *record.Record) error {
	<-s.goOn
	s.records = append(s.records, *r)
	return nil
}

// reporting reports what a process does to the one that leads.
type reporting struct {
	ctx         context.Context
	participant *scenario.Participant
}

func (*reporting) Wants(kind record.Kind) bool { return kind == record.StepEnd }

func (r *reporting) Record(each *record.Record) error {
	if !each.Reportable() {
		return nil
	}
	return r.participant.Report(r.ctx, each)
}

// TestStuckOutput: processes run all cases, to their ends, while the one that leads cannot write a single record. It
// has all of them later, each within its case.
func TestStuckOutput(t *testing.T) {
	const rounds = 200 // with two steps a round, more than may be under way at once
	path := filepath.Join(t.TempDir(), "case.yaml")
	text := `rdmarun: v1
roles: {server: {buffers: {rx: {size: 64}}}, client: {buffers: {tx: {size: 64}}}}
cases:
  - name: one
    steps: [{repeat: 200, do: [{role: server, query_device: {}, as: facts}, {role: server, fill: {buffer: rx, byte: 1}}, {role: client, fill: {buffer: tx, byte: 1}}]}]
  - name: two
    steps: [{role: client, fill: {buffer: tx, byte: 1}}]
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	server, err := bus.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	members := make(map[string]string)
	var participants []*scenario.Participant
	for _, role := range []string{"server", "client"} {
		who := bus.NewCredentials()
		members[who.Name] = role
		here, there := net.Pipe()
		go func() { _ = server.Serve(t.Context(), who, there) }() // until the end of the connection
		conn, err := bus.Over(who, here)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Close)
		participants = append(participants, &scenario.Participant{
			Roles: []string{role}, ControllerName: "lead", MeetingConfig: meeting.Config{Name: role, Bus: conn},
		})
	}
	controller := &scenario.Participant{
		Controller:    &scenario.Controller{Players: map[string]string{"server": "server", "client": "client"}},
		MeetingConfig: meeting.Config{Name: "lead", Server: server, Members: members},
	}
	out := &stuckOutput{goOn: make(chan bool)}
	led := make(chan error, 1)
	go func() {
		led <- play(t.Context(), path, controller, func(config *scenario.RunConfig) bool {
			config.Consumers = []record.Consumer{out}
			return true
		})
	}()
	var running sync.WaitGroup
	for _, participant := range participants {
		running.Go(func() {
			err := play(t.Context(), path, participant, func(config *scenario.RunConfig) bool {
				config.Consumers = []record.Consumer{&reporting{t.Context(), participant}}
				return true
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	close(out.goOn)
	if err := <-led; err != nil {
		t.Fatal(err)
	}
	steps, current := make(map[string]int), ""
	for _, each := range out.records {
		switch each.Kind {
		case record.CaseStart:
			current = each.Case
		case record.CaseEnd:
			if current = ""; each.Result.Status != record.Passed {
				t.Errorf("%s: %s %+v", each.Case, each.Result.Status, each.Result)
			}
		case record.StepEnd:
			if steps[each.Host]++; each.Case != current {
				t.Errorf("a step of %s is in the records of %q", each.Case, current)
			}
		}
	}
	if steps["server"] != 2*rounds || steps["client"] != rounds+1 {
		t.Errorf("%v", steps)
	}
}
