package record

import (
	"fmt"
	"slices"
)

// Tallies counts events of a case outside of its steps.
type Tallies struct {
	Counters []Counter   `json:"counters,omitempty"`
	Faults   []Fault     `json:"faults,omitempty"`
	Known    []KnownStep `json:"known_failures,omitempty"`
}

// Counter is a counter of a device that has grown in the case.
type Counter struct {
	Host   string `json:"host,omitempty"`
	Device string `json:"device"`
	Name   string `json:"name"` // the kernel's name
	Grew   uint64 `json:"grew"`
	// Meaning is what it counts; empty if unknown.
	Meaning string `json:"meaning,omitempty"`
}

// Fault counts the applications of faults with one name, to messages or to ids.
type Fault struct {
	Name  string `json:"name"`
	Count uint64 `json:"count"`
}

// KnownStep is a step that failed as its xfail expects, so that the case continued.
type KnownStep struct {
	File   string `json:"file,omitempty"` // where the step is, if not in the case's file
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Role   string `json:"role,omitempty"`
	Action string `json:"action"`
	What   string `json:"what"`
	Reason string `json:"reason"`
	Count  uint64 `json:"count"` // in the rounds of a loop
}

// String is the step with its failure, in one line.
func (k *KnownStep) String() string {
	text := fmt.Sprintf("%d:%d: ", k.Line, k.Column)
	if k.File != "" {
		text = k.File + ":" + text
	}
	if k.Role != "" {
		text += k.Role + " "
	}
	text += k.Action + ": " + k.What
	if k.Count > 1 {
		text += fmt.Sprintf(", %d times", k.Count)
	}
	return text + " (" + k.Reason + ")"
}

// Where is the device of a counter, with its host.
func (c *Counter) Where() string {
	if c.Host == "" {
		return c.Device
	}
	return c.Host + " " + c.Device
}

// maxTallies bounds the entries of a kind in a case: another process may send any number.
const maxTallies = 1000

// Add adds the tallies of another part of the case.
func (t *Tallies) Add(more *Tallies) {
	for _, each := range more.Counters {
		t.Counters = tallied(t.Counters, each, func(c *Counter) (*uint64, any) {
			return &c.Grew, [3]string{c.Host, c.Device, c.Name}
		})
	}
	for _, each := range more.Faults {
		t.Faults = tallied(t.Faults, each, func(f *Fault) (*uint64, any) { return &f.Count, f.Name })
	}
	for _, each := range more.Known {
		t.Known = tallied(t.Known, each, func(k *KnownStep) (*uint64, any) {
			same := *k
			same.Count, same.What = 0, "" // What may have numbers of its round
			return &k.Count, same
		})
	}
}

// tallied adds one to a list with unique keys; an entry with the same key is counted together.
func tallied[T any](list []T, one T, of func(*T) (count *uint64, key any)) []T {
	count, key := of(&one)
	i := slices.IndexFunc(list, func(each T) bool { _, has := of(&each); return has == key })
	switch {
	case i >= 0:
		sum, _ := of(&list[i])
		*sum += *count
	case len(list) < maxTallies:
		list = append(list, one)
	}
	return list
}
