package scenario

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/tags"
)

// Selection says which cases of the checked scenarios are meant.  The zero Selection means all.
type Selection struct {
	// Tags is a condition on the tags of a case and its file; nil holds for all.
	Tags *tags.Expression
	// IDs are patterns of ids, as in path.Match but with * also for slashes; empty: all.
	IDs []string
	// Only tells whether an id is meant, for selections that a file or an earlier run makes; nil: all.
	Only func(id string) bool
	// Shard is a part of what the others leave.
	Shard Shard
}

// Selected is a case that is meant.
type Selected struct {
	Scenario Scenario
	Case     *compile.Case
}

// Shard is one of several parts of about the same size; the zero Shard is everything.
type Shard struct {
	Index, Count int // the Index-th of Count, from 1
}

// ParseShard reads "2/5", the second of five parts.
func ParseShard(text string) (Shard, error) {
	index, count, ok := strings.Cut(text, "/")
	i, badIndex := strconv.Atoi(index)
	n, badCount := strconv.Atoi(count)
	switch {
	case !ok || badIndex != nil || badCount != nil:
		return Shard{}, fmt.Errorf("%q is not of the form I/N: 2/5 is the second of five parts", text)
	case n < 1 || i < 1 || i > n:
		return Shard{}, fmt.Errorf("%q: the parts of %d are 1/%d to %d/%d", text, n, n, n, n)
	}
	return Shard{i, n}, nil
}

// has deals the cases like cards, so that neighbours, which often take as long, go to different parts.
func (s Shard) has(position int) bool { return s.Count <= 1 || position%s.Count == s.Index-1 }

// Select lists the cases that are meant, in the order of files and cases.  The error is that of a pattern.
func Select(scenarios []Scenario, selection Selection) ([]Selected, error) {
	var cases []Selected
	position := 0
	for _, s := range scenarios {
		for _, c := range s.Program.Cases {
			wanted, err := selection.has(c)
			if err != nil {
				return nil, err
			}
			if !wanted {
				continue
			}
			if selection.Shard.has(position) {
				cases = append(cases, Selected{s, c})
			}
			position++
		}
	}
	return cases, nil
}

func (s Selection) has(c *compile.Case) (bool, error) {
	if !s.Tags.Matches(c.Tags) || s.Only != nil && !s.Only(c.ID) {
		return false, nil
	}
	return matches(c.ID, s.IDs)
}

// matches compares an id with patterns.  A slash is no border in an id, so it is hidden from path.Match.
// An id may itself hold brackets, "[bad=past_end]", so the plain id is compared first.
func matches(id string, patterns []string) (bool, error) {
	hide := strings.NewReplacer("/", "\x00")
	for _, pattern := range patterns {
		if pattern == id {
			return true, nil
		}
		ok, err := path.Match(hide.Replace(pattern), hide.Replace(id))
		if ok || err != nil {
			return ok, err
		}
	}
	return len(patterns) == 0, nil
}
