package record

import (
	"fmt"
	"slices"
)

// Tallies count what has happened in a case beside its steps.
type Tallies struct {
	Counters []Counter   `json:"counters,omitempty"`
	Faults   []Fault     `json:"faults,omitempty"`
	Known    []KnownStep `json:"known_failures,omitempty"`
}

// Counter is a counter of a device that has grown in the case.
type Counter struct {
	Host   string `json:"host,omitempty"`
	Device string `json:"device"`
	Name   string `json:"name"` // as the kernel has it
	Grew   uint64 `json:"grew"`
	// Meaning is what it counts; empty where nobody knows.
	Meaning string `json:"meaning,omitempty"`
}

// Fault is how often a fault was applied, to messages or to ids, of all faults with that name together.
type Fault struct {
	Name  string `json:"name"`
	Count uint64 `json:"count"`
}

// KnownStep is a step that has failed as its xfail says, so that the case goes on.
type KnownStep struct {
	File   string `json:"file,omitempty"` // where the step stands, if not in the case's file
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Role   string `json:"role,omitempty"`
	Action string `json:"action"`
	What   string `json:"what"`
	Reason string `json:"reason"`
	Count  uint64 `json:"count"` // in rounds of a loop
}

// String is the step with what became of it, in one line.
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

// Where is the device of a counter.
func (c *Counter) Where() string {
	if c.Host == "" {
		return c.Device
	}
	return c.Host + " " + c.Device
}

// mostTallies bounds how many of a kind a case keeps: another process may tell any number.
const mostTallies = 1000

// Add adds what another part of the case has counted.
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
			same.Count, same.What = 0, "" // which may have numbers of its round
			return &k.Count, same
		})
	}
}

// tallied adds one to a list that has each key once.
func tallied[T any](list []T, one T, of func(*T) (count *uint64, key any)) []T {
	count, key := of(&one)
	i := slices.IndexFunc(list, func(each T) bool { _, has := of(&each); return has == key })
	switch {
	case i >= 0:
		sum, _ := of(&list[i])
		*sum += *count
	case len(list) < mostTallies:
		list = append(list, one)
	}
	return list
}
