package scenario

import (
	"context"
	"fmt"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/exec"
	"rdmarun/host/scenario/testbed"
)

// families are cases that share fixtures, and each other case alone, in the order of the first of each.
func families(cases []Selected) (list [][]Selected) {
	type family struct {
		program *compile.Program
		number  int
	}
	at := make(map[family]int)
	for _, each := range cases {
		of := family{each.Scenario.Program, each.Case.Family}
		if i, known := at[of]; known && of.number != 0 {
			list[i] = append(list[i], each)
			continue
		}
		at[of] = len(list)
		list = append(list, []Selected{each})
	}
	return list
}

// family runs cases, one after another.
func (j *jobs) family(ctx context.Context, cases []Selected, round int) {
	share := j.share(cases)
	defer share.close(j)
	for i, each := range cases {
		j.mu.Lock()
		over := i > 0 && j.over(ctx)
		if !over {
			j.begun++
		}
		j.mu.Unlock()
		if over {
			return
		}
		share.last(i == len(cases)-1)
		result := j.attempts(ctx, each, round, share)
		j.mu.Lock()
		j.totals.Count(&result)
		j.failed = j.failed || !result.Status.OK()
		j.mu.Unlock()
	}
}

// share is what the cases of a family hand from one to the next; nil for those that have all for themselves.
type share struct {
	of exec.Session
	// providers are those of the session, while it is open, and end closes them.
	providers testbed.Providers
	end       func() []closed
	isLast    bool
}

// share is what cases may share.  Where several processes play the cases, nothing is shared: all of them would have to
// agree on keeping it.  Nor with a capture, whose packets are those of one case.
func (j *jobs) share(cases []Selected) *share {
	if len(cases) < 2 || j.config.Participant != nil || j.config.Capture != nil || j.config.OnFailure != nil {
		return nil
	}
	return &share{}
}

// open opens providers with f, unless an earlier case has left its own.
func (s *share) open(f func() (testbed.Providers, func() []closed, error)) (testbed.Providers, func() []closed, error) {
	if s == nil {
		return f()
	}
	if s.of.Open() {
		return s.providers, s.end, nil
	}
	var err error
	s.providers, s.end, err = f()
	return s.providers, s.end, err
}

// session is that of the case that is about to run, and whether no other comes after it; nil for none.
func (s *share) session() (session *exec.Session, last bool) {
	if s == nil {
		return nil, true
	}
	return &s.of, s.isLast
}

// last sets whether the case that comes next is the last.
func (s *share) last(is bool) {
	if s != nil {
		s.isLast = is
	}
}

// close ends what is left: the last case may not have run.
func (s *share) close(j *jobs) {
	if s == nil || !s.of.Open() {
		return
	}
	for _, err := range s.of.Close() {
		if j.config.Warn != nil {
			j.config.Warn(fmt.Sprintf("behind the last case that has run: %v", err))
		}
	}
	s.end() // objects that still live have been reported
}
