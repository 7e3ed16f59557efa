// Package progress tells how far the running steps of a case are: loops by their rounds, measurements by their parts.
package progress

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Steps tell how far the running steps of a case are; all branches share them, and other goroutines ask.
type Steps struct {
	mu  sync.Mutex
	all []*Step // in the order of their beginnings, so that a loop stands before those in it
}

// Step is how far one step is.
type Step struct {
	what  string // what is counted; "" hides it
	Of    int    // Unknown where there is no count
	At    atomic.Int64
	parts bool // the count is of parts and stands in brackets behind what is done
}

// Unknown is the count of a loop without a known number of rounds.
const Unknown = -1

// Begin adds a step that does something several times.
func (a *Steps) Begin(what string, of int) *Step {
	step := &Step{what: what, Of: of}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, step)
	return step
}

// Rounds does something as often as is said, or until that fails, and notes how far it is.
func (a *Step) Rounds(round func(i int) error) error {
	for i := 0; a.Of == Unknown || i < a.Of; i++ {
		a.At.Store(int64(i + 1))
		if err := round(i); err != nil {
			return err
		}
	}
	return nil
}

// Part says what a step does now, of its parts the one with this number.
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

// maxNamed bounds how many are named: of many branches the first.
const maxNamed = 3

// String is how far all are, "round 8123/20000, SEND 64 B (6/20)"; "" when nothing is counted.
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
