package exec_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/exec"
	"rdmarun/host/scenario/meeting"
	"rdmarun/host/scenario/testbed"
)

// network carries what the processes of a case tell each other, without NATS.  As in a meeting, what one tells comes in
// its order, and what was said in answer to a message after it, everywhere.  Apart from that messages come in any
// order: of those under way the next that comes is drawn.  A process may die after so many messages.
type network struct {
	mu      sync.Mutex
	drawn   *rand.Rand
	change  chan struct{}
	boxes   map[string]*box
	dead    map[string]bool
	dies    string
	dieAt   int
	told    int // messages of the one that dies
	ordered int // messages that came while another process had some under way
}

func newNetwork(seed uint64, names ...string) *network {
	n := &network{
		drawn: rand.New(rand.NewPCG(seed, 1)), change: make(chan struct{}), boxes: make(map[string]*box),
		dead: make(map[string]bool),
	}
	for _, name := range names {
		n.boxes[name] = &box{
			network: n, name: name, arrived: make(map[meeting.Key]json.RawMessage), coming: make(map[string][]sent),
			got: make(map[string]int),
		}
	}
	return n
}

type sent struct {
	key   meeting.Key
	value json.RawMessage
	forMe bool
	// after is how many messages of each process its sender had got.
	after map[string]int
}

// box is the mailbox of a process.
type box struct {
	network *network
	name    string
	arrived map[meeting.Key]json.RawMessage
	coming  map[string][]sent // by who has sent it
	got     map[string]int    // how many have come of each
}

func (b *box) Name() string                     { return b.name }
func (b *box) Tell(key string, value any) error { return b.Send("", key, value) }
func (b *box) Close()                           {}

func (b *box) Send(to, key string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	n := b.network
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dies == b.name {
		if n.told++; n.told > n.dieAt {
			n.dead[b.name] = true
		}
	}
	for name, other := range n.boxes {
		if name != b.name && !n.dead[b.name] {
			each := sent{meeting.Key{From: b.name, Name: key}, raw, to == "" || to == name, maps.Clone(b.got)}
			other.coming[b.name] = append(other.coming[b.name], each)
		}
	}
	close(n.change)
	n.change = make(chan struct{})
	return nil
}

// deliver has one message come, of a process that is drawn; false when none is under way.  The lock is held.
func (b *box) deliver() bool {
	var senders []string
	for name, list := range b.coming {
		if len(list) == 0 {
			continue
		}
		early := false
		for of, count := range list[0].after {
			early = early || of != b.name && count > b.got[of]
		}
		if !early {
			senders = append(senders, name)
		}
	}
	if len(senders) == 0 {
		return false
	}
	slices.Sort(senders)
	if len(senders) > 1 {
		b.network.ordered++
	}
	from := senders[b.network.drawn.IntN(len(senders))]
	first := b.coming[from][0]
	b.coming[from] = b.coming[from][1:]
	if b.got[from]++; first.forMe {
		b.arrived[first.key] = first.value
	}
	return true
}

// some has as many messages come as are drawn.  The lock is held.
func (b *box) some() {
	for b.network.drawn.IntN(2) == 0 && b.deliver() {
	}
}

func (b *box) Await(ctx context.Context, from string, keys ...string) (string, json.RawMessage, error) {
	var list []meeting.Key
	for _, key := range keys {
		list = append(list, meeting.Key{From: from, Name: key})
	}
	key, raw, err := b.AwaitWith(ctx, []string{from}, list...)
	return key.Name, raw, err
}

func (b *box) AwaitWith(ctx context.Context, all []string, keys ...meeting.Key) (meeting.Key, json.RawMessage, error) {
	n := b.network
	for {
		n.mu.Lock()
		for _, key := range keys {
			if raw, came := b.arrived[key]; came {
				delete(b.arrived, key)
				n.mu.Unlock()
				return key, raw, nil
			}
		}
		if b.deliver() {
			n.mu.Unlock()
			continue
		}
		change := n.change
		for _, name := range all {
			if n.dead[name] {
				n.mu.Unlock()
				return meeting.Key{}, nil, &meeting.GoneError{Who: name, Why: "has died"}
			}
		}
		n.mu.Unlock()
		select {
		case <-change:
		case <-ctx.Done():
			return meeting.Key{}, nil, context.Cause(ctx)
		}
	}
}

func (b *box) Take(from, key string) (json.RawMessage, bool) {
	b.network.mu.Lock()
	defer b.network.mu.Unlock()
	b.some()
	raw, came := b.arrived[meeting.Key{From: from, Name: key}]
	delete(b.arrived, meeting.Key{From: from, Name: key})
	return raw, came
}

func (b *box) HasCome(from string, key []byte) bool {
	b.network.mu.Lock()
	defer b.network.mu.Unlock()
	_, came := b.arrived[meeting.Key{From: from, Name: string(key)}]
	return came
}

func (b *box) Forget(prefix string) {
	b.network.mu.Lock()
	defer b.network.mu.Unlock()
	for key := range b.arrived {
		if strings.HasPrefix(key.Name, prefix) {
			delete(b.arrived, key)
		}
	}
}

// played is a file of a case that three processes play, of which "observer" leads and has no role.
const played = `rdmarun: v1
provider: {soft: {link: udp}}
roles: {server: {buffers: {rx: {size: 64}}}, client: {buffers: {tx: {size: 64, fill: {byte: 7}}}}}
finally: [{role: server, fill: {buffer: rx, byte: 1}}]
steps:
  - {role: client, decode: {buffer: tx, fields: [{u8: value}]}, as: first}
  - {role: server, fill: {buffer: rx, byte: $(first.value)}}
  - repeat: 20
    as: i
    do:
      - {role: server, fill: {buffer: rx, byte: $(i)}}
      - {role: client, fill: {buffer: tx, byte: $(i + 1)}, if: i % 3 == 0}
      - {role: server, decode: {buffer: rx, fields: [{u8: value}]}, as: got}
      - {assert: got.value == i}
  - repeat: 50
    as: j
    do:
      - {role: client, fill: {buffer: tx, byte: $(j)}}
      - {role: client, decode: {buffer: tx, fields: [{u8: value}]}, as: last}
  - {assert: last.value == 49}
  - parallel:
      - do: [{role: server, query_device: {}, as: one}, {role: client, query_device: {}, as: two}]
      - do: [{role: client, query_device: {}, as: three}, {role: server, query_device: {}, as: four}]
  - {assert: one.max_qp == two.max_qp && three.max_qp == four.max_qp}
`

// play runs a file's case in a process for each role and in an observer, over a network, and returns the results by
// process.
func play(t *testing.T, text string, n *network) map[string]record.Result {
	t.Helper()
	path := filepath.Join(t.TempDir(), "case.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	found, mu := make(map[string]record.Result), sync.Mutex{}
	var running sync.WaitGroup
	for name := range n.boxes {
		running.Go(func() {
			checked := scenario.Check([]string{path}, scenario.Params{}) // one for each, as in processes
			if checked.Errors.Len() > 0 {
				t.Error(checked.Errors.Sorted())
				return
			}
			program := checked.Scenarios[0].Program
			own := *program.Cases[0]
			own.Roles = nil
			for i, role := range program.Cases[0].Roles {
				if role.Position = i; role.Name == name {
					own.Roles = append(own.Roles, role)
				} else {
					own.Elsewhere = append(own.Elsewhere, role)
				}
			}
			provider, err := scenario.OpenSoft(scenario.Opening{})
			if err != nil {
				t.Error(err)
				return
			}
			defer provider.Close()
			config := exec.Config{
				Providers: testbed.One(provider), Stream: record.NewStream(), Mailbox: n.boxes[name], Key: "case",
				Player: func(role string) string { return role }, Observes: name == "observer",
			}
			if name != "observer" {
				config.Leader = "observer"
			}
			for other := range n.boxes {
				if other != name {
					config.Others = append(config.Others, other)
				}
			}
			result := exec.Case(t.Context(), config, program, &own)
			mu.Lock()
			defer mu.Unlock()
			found[name] = result
		})
	}
	running.Wait()
	return found
}

// TestPeers: whatever comes first of what several processes tell, each takes the same way through the case, to its end.
func TestPeers(t *testing.T) {
	mixed := 0
	for seed := range uint64(8) {
		n := newNetwork(seed, "server", "client", "observer")
		for name, result := range play(t, played, n) {
			if result.Status != record.Passed {
				t.Errorf("seed %d: %s: %s %s %+v", seed, name, result.Status, result.Reason, result.Failures)
			}
		}
		mixed += n.ordered
	}
	if mixed == 0 {
		t.Error("no message of one process ever waited with one of another")
	}
}

// TestPeerDies: wherever a process dies in a case, the others end it, and say who has died.
func TestPeerDies(t *testing.T) {
	for _, dieAt := range []int{0, 1, 2, 3, 5, 8, 13} {
		for _, dies := range []string{"server", "client"} {
			t.Run(fmt.Sprintf("%s after %d", dies, dieAt), func(t *testing.T) {
				n := newNetwork(7, "server", "client", "observer")
				n.dies, n.dieAt = dies, dieAt
				found := play(t, played, n)
				if !n.dead[dies] {
					t.Skip("the case had ended before")
				}
				for name, result := range found {
					if name == dies {
						continue
					}
					text := fmt.Sprintf("%s %+v", result.Reason, result.Failures)
					if result.Status != record.Errored ||
						!strings.Contains(text, dies+" has died") &&
							!strings.Contains(text, dies+" has ended the case") {
						t.Errorf("%s: %s: %s", name, result.Status, text)
					}
				}
			})
		}
	}
}

// TestEndOfOne: a failure of one process is that of all.
func TestEndOfOne(t *testing.T) {
	failing := played + "  - {role: client, check: {buffer: tx, all: 0}}\n" +
		"  - {role: server, fill: {buffer: rx, byte: 1}}\n"
	for name, result := range play(t, failing, newNetwork(3, "server", "client", "observer")) {
		if result.Status != record.Failed || len(result.Failures) != 1 || result.Failures[0].Role != "client" ||
			result.Failures[0].Action != "check" {
			t.Errorf("%s: %s %+v", name, result.Status, result.Failures)
		}
	}
}
