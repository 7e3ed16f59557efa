package exec

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// advances are how far the running steps of a case are; all branches share them, and other goroutines ask.
type advances struct {
	mu  sync.Mutex
	all []*advance // in the order of their beginnings, so that a loop stands before those in it
}

// advance is how far one step is.
type advance struct {
	what  string // what is counted; "" hides it
	of    int    // unknown: nobody knows how many there are
	at    atomic.Int64
	parts bool // the count is of parts and stands in brackets behind what is done
}

// unknown is how often something is done of which nobody knows that.
const unknown = -1

// begin adds a step that does something several times.
func (a *advances) begin(what string, of int) *advance {
	step := &advance{what: what, of: of}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, step)
	return step
}

// rounds does something as often as is said, or until that fails, and notes how far it is.
func (a *advance) rounds(round func(i int) error) error {
	for i := 0; a.of == unknown || i < a.of; i++ {
		a.at.Store(int64(i + 1))
		if err := round(i); err != nil {
			return err
		}
	}
	return nil
}

// part says what a step does now, of its parts the one with this number.
func (a *advances) part(step *advance, what string, at, of int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	step.what, step.of, step.parts = what, of, true
	step.at.Store(int64(at))
}

// end takes a step away.
func (a *advances) end(step *advance) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = slices.DeleteFunc(a.all, func(each *advance) bool { return each == step })
}

// mostAdvances bounds how many are named: of many branches the first.
const mostAdvances = 3

// String is how far all are, "round 8123/20000, SEND 64 B (6/20)"; "" when nothing is counted.
func (a *advances) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var words []string
	for _, step := range a.all {
		switch at := step.at.Load(); {
		case step.what == "":
			continue
		case len(words) == mostAdvances:
			return strings.Join(words, ", ") + "..."
		case step.of == unknown:
			words = append(words, fmt.Sprintf("%s %d", step.what, at))
		case step.parts:
			words = append(words, fmt.Sprintf("%s (%d/%d)", step.what, at, step.of))
		default:
			words = append(words, fmt.Sprintf("%s %d/%d", step.what, at, step.of))
		}
	}
	return strings.Join(words, ", ")
}
