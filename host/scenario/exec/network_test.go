package exec_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/exec"
	"rdmarun/host/scenario/meeting"
	"rdmarun/host/scenario/testbed"
)

// network carries the messages of a case's processes without NATS. As in a meeting, the messages of a process arrive
// in order, and an answer arrives everywhere after the message that it answers. A schedule decides everything else. It
// decides which message comes next, how long those of a process are delayed, and after how many messages a process
// dies.
type network struct {
	mu       sync.Mutex
	change   chan struct{}
	boxes    map[string]*box
	dead     map[string]bool
	dies     string
	dieAt    int
	declines string // a process that does not run the case
	reported int    // messages of the one that dies
	// ordered are the messages that came while another process had some under way, delayed those held back.
	ordered, delayed int
	// steps counts what the network has done; beyond maxSteps something goes round in circles.
	steps int
	// more, if set, is the key of a message that no process awaits and that comes before another one; "" is for none.
	more    func(key string) string
	stop    context.CancelCauseFunc
	running context.Context
}

// maxSteps bounds the waits and messages of a case; the longest here has a few thousand.
const maxSteps = 200_000

// schedule decides in a box which message comes next, over and over.
type schedule []choice

// choice picks one of the processes with messages under way, and holds back those of another until so many have come.
type choice struct{ Next, Hold, For int }

func newNetwork(of func(name string) schedule, names ...string) *network {
	n := &network{change: make(chan struct{}), boxes: make(map[string]*box), dead: make(map[string]bool)}
	n.running, n.stop = context.WithCancelCause(context.Background())
	for _, name := range names {
		n.boxes[name] = &box{
			network: n, name: name, arrived: make(map[meeting.Key]json.RawMessage), coming: make(map[string][]sent),
			got: make(map[string]int), held: make(map[string]int), schedule: of(name),
		}
	}
	return n
}

// inOrder is the schedule of a network without delays.
func inOrder(string) schedule { return schedule{{}} }

type sent struct {
	key   meeting.Key
	value json.RawMessage
	forMe bool
	// after is how many messages of each process its sender had got.
	after map[string]int
}

// box is the mailbox of a process.
type box struct {
	network  *network
	name     string
	arrived  map[meeting.Key]json.RawMessage
	coming   map[string][]sent // by sender
	got      map[string]int    // how many have come of each
	held     map[string]int    // for how many messages those of a process are held back
	schedule schedule
	at       int
	// closed is set when the process has ended the case; unread counts the messages in its mailbox at that time.
	closed bool
	unread int
}

func (b *box) Name() string                          { return b.name }
func (b *box) Broadcast(key string, value any) error { return b.Send("", key, value) }

func (b *box) Close() {
	b.network.mu.Lock()
	defer b.network.mu.Unlock()
	b.closed, b.unread = true, len(b.arrived)
	clear(b.arrived)
}

func (b *box) Send(to, key string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	n := b.network
	n.mu.Lock()
	defer n.mu.Unlock()
	n.step()
	if n.dies == b.name {
		if n.reported++; n.reported > n.dieAt {
			n.dead[b.name] = true
		}
	}
	keys := []string{key}
	if n.more != nil {
		keys = []string{n.more(key), key}
	}
	for name, other := range n.boxes {
		for _, key := range keys {
			if name != b.name && !n.dead[b.name] && key != "" {
				each := sent{meeting.Key{From: b.name, Name: key}, raw, to == "" || to == name, maps.Clone(b.got)}
				other.coming[b.name] = append(other.coming[b.name], each)
			}
		}
	}
	close(n.change)
	n.change = make(chan struct{})
	return nil
}

// step counts what the network does.  The lock is held.
func (n *network) step() {
	if n.steps++; n.steps == maxSteps {
		n.stop(fmt.Errorf("%d waits and messages in one case", maxSteps))
	}
}

// next is the next choice of the schedule.  The lock is held.
func (b *box) next() choice {
	b.at++
	return b.schedule[(b.at-1)%len(b.schedule)]
}

// deliver has one message come, of the process that the schedule picks; false when none is under way.  The lock is
// held.
func (b *box) deliver() bool {
	var senders, late []string
	for name, list := range b.coming {
		if len(list) == 0 {
			continue
		}
		early := false
		for of, count := range list[0].after {
			early = early || of != b.name && count > b.got[of]
		}
		switch {
		case early:
		case b.held[name] > 0:
			late = append(late, name)
		default:
			senders = append(senders, name)
		}
	}
	b.network.delayed += len(late)
	if len(senders) == 0 {
		senders = late // a message is delayed, and never lost
	}
	if len(senders) == 0 {
		return false
	}
	slices.Sort(senders)
	if len(senders) > 1 {
		b.network.ordered++
	}
	for name := range b.held {
		b.held[name] = max(0, b.held[name]-1)
	}
	chosen := b.next()
	from := senders[chosen.Next%len(senders)]
	if chosen.For > 0 {
		b.held[senders[chosen.Hold%len(senders)]] = chosen.For
	}
	first := b.coming[from][0]
	b.coming[from] = b.coming[from][1:]
	if b.got[from]++; first.forMe && !b.closed {
		b.arrived[first.key] = first.value
	}
	return true
}

// some has as many messages come as the schedule says.  The lock is held.
func (b *box) some() {
	for b.next().Next%2 == 0 && b.deliver() {
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
		n.step()
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
roles: {server: {buffers: {rx: {size: 64}, ry: {size: 64, fill: {byte: 9}}}}, client: {buffers: {tx: {size: 64, fill: {byte: 7}}}}}
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
      - do:
          - {role: server, decode: {buffer: ry, fields: [{u8: value}]}, as: three}
          - {role: client, decode: {buffer: tx, fields: [{u8: value}]}, as: four}
  - {assert: one.max_qp == two.max_qp && three.value == 9 && four.value == 49}
`

// program is a file as a process has it, which plays one of its roles.
type program struct {
	compiled *compile.Scenario
	own      compile.Case
}

// compiled reads a file for each of several processes.
func compiled(t testing.TB, text string, names ...string) map[string]*program {
	t.Helper()
	path := filepath.Join(t.TempDir(), "case.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]*program)
	for _, name := range names {
		checked := scenario.Check([]string{path}, scenario.Params{}) // one for each, as in processes
		if checked.Errors.Len() > 0 {
			t.Fatal(checked.Errors.Sorted())
		}
		each := &program{compiled: checked.Scenarios[0].Compiled}
		whole := each.compiled.Cases[0]
		each.own = *whole
		each.own.Roles = nil
		for i, role := range whole.Roles {
			if role.Position = i; role.Name == name {
				each.own.Roles = append(each.own.Roles, role)
			} else {
				each.own.Elsewhere = append(each.own.Elsewhere, role)
			}
		}
		all[name] = each
	}
	return all
}

// failer is what of a test play needs: that of Go, or of rapid.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
}

// play runs a case in a process for each role and in an observer, over a network, and returns the results by process.
// However the case ends, each process has closed its mailbox then, and nothing is in it.
func play(t failer, programs map[string]*program, n *network) map[string]record.Result {
	t.Helper()
	found, mu := make(map[string]record.Result), sync.Mutex{}
	var running sync.WaitGroup
	for name := range n.boxes {
		running.Go(func() {
			provider, err := scenario.OpenSoft(scenario.Opening{})
			if err != nil {
				t.Errorf("%v", err)
				return
			}
			defer provider.Close()
			config := exec.Config{
				Providers: testbed.One(provider), Stream: record.NewStream(), Mailbox: n.boxes[name], Key: "case",
				Player: func(role string) string { return role }, IsController: name == "observer",
			}
			if name != "observer" {
				config.Controller = "observer"
			}
			for other := range n.boxes {
				if other != name {
					config.Others = append(config.Others, other)
				}
			}
			own := programs[name].own
			if name == n.declines {
				exec.Decline(config, programs[name].compiled, &own, record.Skipped, "its device is away")
				return
			}
			result := exec.Case(n.running, config, programs[name].compiled, &own)
			mu.Lock()
			defer mu.Unlock()
			found[name] = result
		})
	}
	running.Wait()
	for name, each := range n.boxes {
		if !each.closed || len(each.arrived) > 0 {
			t.Errorf("%s has ended the case: its mailbox is closed %t, with %d messages", name, each.closed,
				len(each.arrived))
		}
	}
	if err := context.Cause(n.running); err != nil {
		t.Errorf("the case does not end: %v", err)
	}
	return found
}

// processes are those of the files here.
var processes = []string{"client", "observer", "server"}

// drawNetwork draws what the network does, and which process dies after how many messages, if any.
func drawNetwork(t *rapid.T) *network {
	step := rapid.Custom(func(t *rapid.T) choice {
		return choice{
			rapid.IntRange(0, 2).Draw(t, "next"), rapid.IntRange(0, 2).Draw(t, "hold"),
			rapid.SampledFrom([]int{0, 0, 0, 1, 5, 50}).Draw(t, "for"),
		}
	})
	n := newNetwork(func(name string) schedule {
		return rapid.SliceOfN(step, 1, 40).Draw(t, name)
	}, processes...)
	n.dies = rapid.SampledFrom([]string{"", "client", "server", "observer"}).Draw(t, "dies")
	n.dieAt = rapid.IntRange(0, 30).Draw(t, "after")
	if n.dies == "observer" {
		n.dieAt %= 3 // it sends its beginning, that it has looked, and its end
	}
	return n
}

// TestPeers draws networks.  With any delays and reordering, all processes of a case end it with the same status.
// Where one dies, the others report it.
func TestPeers(t *testing.T) {
	const fails = played + "  - {role: client, check: {buffer: tx, all: 0}}\n" +
		"  - {role: server, fill: {buffer: rx, byte: 1}}\n"
	passing, failing := compiled(t, played, processes...), compiled(t, fails, processes...)
	seen := make(map[string]int)
	rapid.Check(t, func(t *rapid.T) {
		n := drawNetwork(t)
		programs, want := passing, record.Passed
		if rapid.Bool().Draw(t, "fails") {
			programs, want = failing, record.Failed
		}
		found := play(t, programs, n)
		if n.dead[n.dies] {
			want = record.Errored
			seen[n.dies+" died"]++
		}
		seen[string(want)]++
		seen["reordered"] += n.ordered
		seen["delayed"] += n.delayed
		for name, result := range found {
			if n.dead[name] {
				continue // it sends nothing more
			}
			text := fmt.Sprintf("%s %+v", result.Reason, result.Failures)
			if result.Status != want {
				t.Errorf("%s: %s, want %s: %s", name, result.Status, want, text)
			}
			switch {
			case want == record.Errored && !strings.Contains(text, n.dies+" has died") &&
				!strings.Contains(text, n.dies+" has ended the case"):
				t.Errorf("%s does not say that %s has died: %s", name, n.dies, text)
			case want == record.Failed && (len(result.Failures) != 1 || result.Failures[0].Role != "client" ||
				result.Failures[0].Action != "check"):
				t.Errorf("%s: %s", name, text)
			case want == record.Passed && n.boxes[name].unread > maxUnread:
				t.Errorf("%s: %d messages were not read", name, n.boxes[name].unread)
			}
		}
	})
	for _, what := range []string{
		string(record.Passed), string(record.Failed), string(record.Errored), "reordered", "delayed", "client died",
		"server died", "observer died",
	} {
		if seen[what] == 0 {
			t.Errorf("no case was %s: %v", what, seen)
		}
	}
}

// maxUnread bounds the messages in a mailbox at the end of a case. They are progress of loops that no step waited
// for, and numbers of empty steps.
const maxUnread = 10

// TestPeerDies: wherever a process dies in a case, the others end it and name that process.
func TestPeerDies(t *testing.T) {
	programs := compiled(t, played, processes...)
	for _, dieAt := range []int{0, 1, 2, 3, 5, 8, 13} {
		for _, dies := range []string{"server", "client"} {
			t.Run(fmt.Sprintf("%s after %d", dies, dieAt), func(t *testing.T) {
				n := newNetwork(inOrder, processes...)
				n.dies, n.dieAt = dies, dieAt
				found := play(t, programs, n)
				if !n.dead[dies] {
					t.Fatal("the case had ended before")
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

// TestDeclined: a case that one process does not run is skipped by all, with its reason. Nothing waits for it or is
// kept in its mailbox.
func TestDeclined(t *testing.T) {
	programs := compiled(t, played, processes...)
	for _, declines := range processes {
		n := newNetwork(inOrder, processes...)
		n.declines = declines
		found := play(t, programs, n)
		if len(found) != len(processes)-1 {
			t.Errorf("%d processes have run the case that %s has declined", len(found), declines)
		}
		for name, result := range found {
			if result.Status != record.Skipped || !strings.Contains(result.Reason, "its device is away") {
				t.Errorf("%s: %s: %s", name, result.Status, result.Reason)
			}
		}
	}
}

// TestNothingPilesUp: messages of a loop, or of a step of several processes, that no process has read are dropped at
// its end.
func TestNothingPilesUp(t *testing.T) {
	const text = `rdmarun: v1
provider: {soft: {link: udp}}
roles: {server: {}, client: {}}
steps:
  - repeat: 40
    as: i
    do:
      - {repeat: 2, do: [{role: client, query_device: {}}]}
      - {barrier: "round $(i)", of: [client, server]}
`
	n := newNetwork(inOrder, processes...)
	n.more = func(key string) string {
		if !strings.HasPrefix(key, "step/") {
			return ""
		}
		return key + "/more"
	}
	for name, result := range play(t, compiled(t, text, processes...), n) {
		if result.Status != record.Passed || n.boxes[name].unread > maxUnread {
			t.Errorf("%s: %s, %d messages were not read", name, result.Status, n.boxes[name].unread)
		}
	}
}
