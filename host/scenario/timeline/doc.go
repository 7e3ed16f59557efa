// Package timeline keeps what happens in a case and when, and makes records of it.
//
//   - history.go remembers the last steps of each role, and shows a step in words.
//   - packets.go finds the packets of a step, where the provider captures them.
//   - loops.go times the rounds of named loops.
//
// Package exec reports beginnings and ends.  The lock of the testbed guards everything here.
package timeline

import "time"

// Instant is a time since the case began on both clocks, which are one where the provider has the wall clock.
type Instant struct{ Wall, Clock time.Duration }

// Since is the time from an earlier instant to this one, on both clocks.
func (i Instant) Since(earlier Instant) Instant {
	return Instant{i.Wall - earlier.Wall, i.Clock - earlier.Clock}
}
