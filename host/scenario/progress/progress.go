// Package progress has the progress of the running steps of a case: loops count rounds, measurements count parts.
package progress

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Steps is the progress of the running steps of a case.  All branches share it, and any goroutine may read it.
type Steps struct {
	mu  sync.Mutex
	all []*Step // in order of their start, so that a loop comes before its steps
}

// Step is the progress of one step.
type Step struct {
	what  string // what is counted; "" hides it
	Of    int    // Unknown without a known count
	At    atomic.Int64
	parts bool // the count is of parts, and shown in brackets
}

// Unknown is the count of a loop without a known number of rounds.
const Unknown = -1

// Begin adds a step that counts.
func (a *Steps) Begin(what string, of int) *Step {
	step := &Step{what: what, Of: of}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, step)
	return step
}

// Rounds calls round as often as Of says, or until it fails, and counts.
func (a *Step) Rounds(round func(i int) error) error {
	for i := 0; a.Of == Unknown || i < a.Of; i++ {
		a.At.Store(int64(i + 1))
		if err := round(i); err != nil {
			return err
		}
	}
	return nil
}

// Part sets the current part of a step, and its number.
func (a *Steps) Part(step *Step, what string, at, of int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	step.what, step.Of, step.parts = what, of, true
	step.At.Store(int64(at))
}

// End removes a step.
func (a *Steps) End(step *Step) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = slices.DeleteFunc(a.all, func(each *Step) bool { return each == step })
}

// maxNamed bounds the shown steps: of many branches the first.
const maxNamed = 3

// String is the progress of all steps, "round 8123/20000, SEND 64 B (6/20)"; "" when nothing is counted.
func (a *Steps) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var words []string
	for _, step := range a.all {
		switch at := step.At.Load(); {
		case step.what == "":
			continue
		case len(words) == maxNamed:
			return strings.Join(words, ", ") + "..."
		case step.Of == Unknown:
			words = append(words, fmt.Sprintf("%s %d", step.what, at))
		case step.parts:
			words = append(words, fmt.Sprintf("%s (%d/%d)", step.what, at, step.Of))
		default:
			words = append(words, fmt.Sprintf("%s %d/%d", step.what, at, step.Of))
		}
	}
	return strings.Join(words, ", ")
}
