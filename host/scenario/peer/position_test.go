package peer

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"rdmarun/host/scenario/meeting"
)

// keptMessages keeps the messages of a step before its outcome.
type keptMessages struct{ kept []string }

func (*keptMessages) MessageKey(n int) string { return fmt.Sprintf("step/2.0/1/measured/%d", n) }

func (m *keptMessages) Receive(raw json.RawMessage) error {
	m.kept = append(m.kept, string(raw))
	return nil
}

// TestPosition: a step has the key of its branch and number, and each branch counts from 1.
func TestPosition(t *testing.T) {
	var at Position
	at.Next()
	at.Next()
	if at.Key() != "step/2" {
		t.Error(at.Key())
	}
	second := at.Branch(1)
	second.Next()
	inner := second.Branch(0)
	inner.Next()
	if second.Key() != "step/2.1/1" || inner.Key() != "step/2.1/1.0/1" {
		t.Error(second.Key(), inner.Key())
	}
}

// TestKnown: a process that comes to a step after its outcome also takes the messages before the outcome.  A later
// number makes an empty step known, of that process and branch only.
func TestKnown(t *testing.T) {
	arrived := func(name string) meeting.Key { return meeting.Key{From: "a", Name: name} }
	mailbox := &fakeMailbox{arrived: map[meeting.Key]string{
		arrived("step/2.0/1/measured/0"): "0", arrived("step/2.0/1/measured/1"): "1",
		arrived("step/2.0/1"): `{"steps":7}`,
	}}
	g, of := NewGroup(mailbox, nil), &keptMessages{}
	at := Position{branch: "2.0/"}
	at.Next()
	outcome, over, err := g.Known(&at, "a", of)
	if err != nil || !over || outcome.Steps != 7 || !slices.Equal(of.kept, []string{"0", "1"}) {
		t.Errorf("%v: %+v, %q came before: %v", over, outcome, of.kept, err)
	}
	mailbox.arrived = map[meeting.Key]string{arrived("quiet/a/2.0/"): "3", arrived("step/2.0/4"): `{"steps":1}`}
	for step, want := range map[int]bool{2: true, 3: true, 4: true, 5: false} {
		at.number, at.key = step, ""
		if _, over, err := g.Known(&at, "a", of); err != nil || over != want {
			t.Errorf("step %d: known is %v: %v", step, over, err)
		}
	}
	at.number = 2
	if _, over, err := g.Known(&at, "b", of); err != nil || over {
		t.Errorf("a's number counts for b: %v", err)
	}
	other := Position{branch: "2.1/", number: 2}
	if _, over, err := g.Known(&other, "a", of); err != nil || over {
		t.Errorf("a number counts for another branch: %v", err)
	}
	mailbox.arrived[arrived("quiet/a/2.1/")] = `"x"`
	if _, over, err := g.Known(&other, "a", of); err == nil || over {
		t.Error("a number that cannot be read is known")
	}
}

// TestAwaitOutcome: a wait takes messages before the outcome as they come, and an outcome that cannot be decoded is an
// error.
func TestAwaitOutcome(t *testing.T) {
	h := newHub("me", "a")
	g, a := NewGroup(h.of("me"), []string{"a"}), h.of("a")
	of := &keptMessages{}
	at := Position{branch: "2.0/"}
	at.Next()
	done := make(chan error)
	var outcome Outcome
	go func() {
		var err error
		outcome, err = g.AwaitOutcome(t.Context(), &at, "a", of)
		done <- err
	}()
	for _, send := range []struct {
		key   string
		value any
	}{
		{"quiet/a/2.0/", 0}, {of.MessageKey(0), 7}, {of.MessageKey(1), 8}, {"step/2.0/1", Outcome{Steps: 3}},
	} {
		if err := a.Broadcast(send.key, send.value); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil || outcome.Steps != 3 || !slices.Equal(of.kept, []string{"7", "8"}) {
		t.Errorf("%+v, %q, %v", outcome, of.kept, err)
	}
	at.Next()
	if err := a.Broadcast("step/2.0/2", "nonsense"); err != nil {
		t.Fatal(err)
	}
	if _, err := g.AwaitOutcome(t.Context(), &at, "a", of); err == nil {
		t.Error("an outcome that is a text")
	}
}
