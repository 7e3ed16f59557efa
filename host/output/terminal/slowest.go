package terminal

import (
	"fmt"
	"slices"
	"time"

	"rdmarun/host/record"
)

const (
	// shownSlowest is how many of the slowest cases are shown, in runs of more.
	shownSlowest = 5
	// worthTelling is how long a case takes at least to be called slow.
	worthTelling = 10 * time.Millisecond
)

// slowest keeps the cases that took longest.
type slowest struct {
	cases []timedCase
	count int // of all that ran
}

type timedCase struct {
	id   string
	took time.Duration
}

func (s *slowest) add(id string, result *record.Result) {
	if result.Status == record.Skipped {
		return
	}
	s.count++
	at, _ := slices.BinarySearchFunc(s.cases, result.Took, func(c timedCase, took time.Duration) int {
		if c.took >= took {
			return -1 // of equal ones the first stays first
		}
		return 1
	})
	if at < shownSlowest {
		s.cases = slices.Insert(s.cases, at, timedCase{id, result.Took})
		s.cases = s.cases[:min(len(s.cases), shownSlowest)]
	}
}

// slowestCases tells where the time went.
func (h *Human) slowestCases() {
	if h.slowest.count <= shownSlowest || h.slowest.cases[0].took < worthTelling {
		return
	}
	h.print("\n%s\n", h.style.dim("slowest"))
	for _, each := range h.slowest.cases {
		h.print("  %s  %s\n", h.style.dim(fmt.Sprintf("%8s", Duration(each.took))), each.id)
	}
}
