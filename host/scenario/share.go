package scenario

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/exec"
	"rdmarun/host/scenario/testbed"
)

// families are cases that share fixtures, and each other case alone, in the order of the first of each.  Those of
// several files have the fixtures of the first, which are compiled for each file.
func families(cases []Selected) (list [][]Selected) {
	type family struct {
		scenario *compile.Scenario // nil: of all files
		name     string
	}
	type fixture struct {
		family       int
		origin, name string
	}
	at, made := make(map[family]int), make(map[fixture]*compile.Fixture)
	for _, each := range cases {
		scenario := each.Scenario.Compiled
		of := family{scenario, each.Case.Family}
		if each.Case.Across {
			of = family{nil, fmt.Sprintf("%s %q %q %+v", of.name, scenario.Provider, scenario.Device, scenario.Soft)}
		}
		i, known := at[of]
		if !known || of.name == "" {
			i, list = len(list), append(list, nil)
			at[of] = i
		}
		if each.Case.Across {
			copied := *each.Case
			copied.Fixtures = slices.Clone(copied.Fixtures)
			for n, own := range copied.Fixtures {
				name := fixture{i, own.Origin, own.Name}
				if own.Shared && made[name] == nil {
					made[name] = own
				}
				copied.Fixtures[n] = cmp.Or(made[name], own)
			}
			each.Case = &copied
		}
		list[i] = append(list[i], each)
	}
	return list
}

// StepCount is how many steps a run of a case reports at least; Exact means no more.  It counts actions, in each round
// of a loop.
type StepCount struct {
	Least int
	Exact bool
}

// StepCounts are those of cases that are run together.  The first case that needs a shared fixture sets it up, and the
// last of the family tears it down.  Only a run knows whether one between them changes it.
func StepCounts(cases []Selected) []StepCount {
	type identity struct {
		scenario *compile.Scenario
		id       string
	}
	counts := make(map[identity]StepCount)
	for _, family := range families(cases) {
		var begun []*compile.Fixture
		for i, each := range family {
			var setUp, tornDown []*compile.Fixture
			for _, fixture := range each.Case.Fixtures {
				switch {
				case !fixture.Shared:
					setUp, tornDown = append(setUp, fixture), append(tornDown, fixture)
				case !slices.Contains(begun, fixture):
					setUp, begun = append(setUp, fixture), append(begun, fixture)
				}
			}
			if i == len(family)-1 {
				tornDown = append(tornDown, begun...)
			}
			least, exact := each.Case.Actions(setUp, tornDown)
			counts[identity{each.Scenario.Compiled, each.Case.ID}] = StepCount{
				least, exact && (len(family) == 1 || len(begun) == 0),
			}
		}
	}
	list := make([]StepCount, len(cases))
	for i, each := range cases {
		list[i] = counts[identity{each.Scenario.Compiled, each.Case.ID}]
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
	// behind are the scenarios with cases that have begun or continued the session, in their order.
	behind []*compile.Scenario
}

// share is what cases may share, of one file or of several.  Where several processes play the cases, nothing is shared:
// all of them would have to agree on keeping it.  Nor with a capture, which has the packets of one case.
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

// session is that of a case of the scenario that is about to run, and whether no other comes after it; nil for none.
func (s *share) session(of *compile.Scenario) (session *exec.Session, last bool) {
	if s == nil {
		return nil, true
	}
	if !s.of.Open() {
		s.behind = nil
	}
	if !slices.Contains(s.behind, of) {
		s.behind = append(s.behind, of)
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
