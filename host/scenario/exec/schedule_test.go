package exec

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestSchedule compares when rounds are due with the sum of the rates until then.
func TestSchedule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s schedule
		rate := rapid.IntRange(1, 1000)
		for range rapid.IntRange(1, 4).Draw(t, "stages") {
			length := time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond
			s = s.then(length, float64(rate.Draw(t, "rate")), float64(rate.Draw(t, "to")))
		}
		due := s[len(s)-1].end
		counts := make([]int, len(s))
		last := time.Duration(-1)
		for round := range due {
			at, stage := s.at(round)
			counts[stage]++
			of := s[stage]
			if at < last || at < of.begin || at > of.begin+of.length {
				t.Fatalf("round %d at %v of stage %d, after %v", round, at, stage, last)
			}
			last = at
			in := (at - of.begin).Seconds()
			passed := of.before + in*of.rate + in*in*(of.to-of.rate)/of.length.Seconds()/2
			if passed < float64(round)-1e-3 || passed > float64(round)+1e-3 && at > of.begin {
				t.Fatalf("round %d at %v, when %g rounds are due", round, at, passed)
			}
		}
		if at, _ := s.at(due); at != s.length() {
			t.Errorf("round %d at %v of %v", due, at, s.length())
		}
		from, most := rapid.IntRange(0, due).Draw(t, "from"), rapid.IntRange(0, due+1).Draw(t, "most")
		left := 0
		for _, rest := range s.rest(from, most) {
			left += rest
		}
		if left != max(0, min(due, most)-from) {
			t.Errorf("%d of %d rounds are left from %d on, of %d", left, due, from, most)
		}
		for stage, rest := range s.rest(0, due) {
			if rest != counts[stage] {
				t.Errorf("%d rounds of stage %d, and %d are due", rest, stage, counts[stage])
			}
		}
	})
}
