package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rdmarun/host/bus/bustest"
	"rdmarun/host/record"
)

// TestJoinedMeshLoses: of four agents that wait on a server one is lost while all are measured with each other.  The
// others are measured nevertheless, its pairs say that they were not, and the host is named.
func TestJoinedMeshLoses(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			s := &standing{server: bustest.Start(t, bustest.Config{User: "lab", Password: "geheim"})}
			for _, name := range []string{"a", "b", "c", "d"} {
				s.agents = append(s.agents, s.join(t, name))
			}
			scenario, records := filepath.Join(folder, "mesh.yaml"), filepath.Join(folder, "records.jsonl")
			text := `rdmarun: v1
roles: {node: {count: 4}}
timeout: 5m
steps:
  - {role: "node[0]", log: it waits}
  - mesh: {role: node, tolerance: 0.0001, measure: {kind: bandwidth, op: RDMA_WRITE, sizes: [4KiB], duration: 2s}}
`
			if err := os.WriteFile(scenario, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			run := startOverLab(
				t, "--nats", s.server.URL("lab:geheim"), "--place", "node=a,b,c,d", scenario, "-o", "jsonl="+records,
			)
			run.await(t, "it waits")
			processes := s.processes(t)
			if len(processes) != 4 {
				t.Fatalf("the agents have %v", processes)
			}
			if err := syscall.Kill(processes[2], signal); err != nil { // that of c, with the third node
				t.Fatal(err)
			}
			said := run.ends(t, exitFailed)
			if !strings.Contains(said, "the process of c ") {
				t.Errorf("the host c is not named:\n%s", said)
			}
			mesh := meshOf(t, records)
			if len(mesh.Pairs) != 6 || mesh.Lost != 3 {
				t.Errorf("%d pairs, %d lost", len(mesh.Pairs), mesh.Lost)
			}
			for _, pair := range mesh.Pairs {
				if with := pair.From == "node[2]" || pair.To == "node[2]"; with != (pair.Lost != "") ||
					with != (pair.First == nil) {
					t.Errorf("%s with %s: %q, %+v", pair.From, pair.To, pair.Lost, pair.First)
				} else if with && !strings.Contains(pair.Lost, "process of c") {
					t.Errorf("%s with %s: %q", pair.From, pair.To, pair.Lost)
				}
			}
			awaitEnds(t, processes)
		})
	}
}

// meshOf is the mesh of a file of records.
func meshOf(t *testing.T, path string) record.Mesh {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var each record.Record
		if err := json.Unmarshal([]byte(line), &each); err == nil && each.Mesh != nil {
			return *each.Mesh
		}
	}
	t.Fatalf("there is no mesh:\n%s", text)
	return record.Mesh{}
}
