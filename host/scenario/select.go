package scenario

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/tags"
	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// Selection selects cases of the checked scenarios.  The zero Selection means all.
type Selection struct {
	// Tags is a condition on the tags of a case and its file; nil holds for all.
	Tags *tags.Expression
	// Words is a condition on words that are in the id or the name; nil holds for all.
	Words *tags.Expression
	// IDs are patterns of ids, as in path.Match but with * also for slashes; empty: all.
	IDs []string
	// Only reports whether an id is meant, for selections that a file or an earlier run makes; nil: all.
	Only func(id string) bool
	// Shard is a part of what the others leave.
	Shard Shard
	// Shuffle is what the order of the cases is drawn from; nil: they are in that of the files.
	Shuffle *uint64
}

// Selected is a case that is meant.
type Selected struct {
	Scenario Scenario
	Case     *compile.Case
	// all are the roles of the case, where Case has those of this process alone.
	all []testbed.RoleConfig
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

// Select lists the cases that are meant, in the order of files and cases unless they are shuffled.  The error is that
// of a pattern.
func Select(scenarios []Scenario, selection Selection) ([]Selected, error) {
	var cases []Selected
	position := 0
	for _, s := range scenarios {
		for _, c := range s.Compiled.Cases {
			wanted, err := matches(c.ID, selection.IDs)
			if err != nil {
				return nil, err
			}
			if !wanted || !selection.Tags.Matches(c.Tags) ||
				!selection.Words.Within(record.CaseTitle(c.ID, s.Path, c.Name)) ||
				selection.Only != nil && !selection.Only(c.ID) {
				continue
			}
			if selection.Shard.has(position) {
				cases = append(cases, Selected{Scenario: s, Case: c})
			}
			position++
		}
	}
	if selection.Shuffle != nil {
		shuffle(cases, *selection.Shuffle)
	}
	return cases, nil
}

// shuffle orders cases by numbers that are drawn from the seed and their ids.  So two cases come in the same order
// with any other cases between them: a part of a run repeats with the same seed.
func shuffle(cases []Selected, seed uint64) {
	drawn := func(each Selected) uint64 {
		id := fnv.New64a()
		id.Write([]byte(each.Case.ID))
		return rand.NewPCG(seed, id.Sum64()).Uint64()
	}
	slices.SortStableFunc(cases, func(a, b Selected) int { return cmp.Compare(drawn(a), drawn(b)) })
}

// matches compares an id with patterns. A slash is not a border in an id. So it is hidden from path.Match. An id may
// have brackets, such as "[bad=past_end]". So the plain id is compared first.
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

// Requirements names what a case needs and not every run has. Examples are "param.peer", "device.mlx5_0",
// "guest.client", "program.server" and capabilities such as "fault.link". The conditions of `requires` are unchanged.
func (s Selected) Requirements() []string {
	var list []string
	for _, name := range s.Scenario.Compiled.Missing {
		list = append(list, "param."+name)
	}
	for _, role := range s.Case.Roles {
		if role.Device != "" {
			list = append(list, "device."+role.Device)
		}
		if role.Guest != nil {
			list = append(list, "guest."+role.Written())
		}
		if role.Program != nil {
			list = append(list, "program."+role.Written())
		}
	}
	if s.Case.Provider != "" {
		list = append(list, "provider."+s.Case.Provider)
	}
	for _, role := range s.Case.Roles {
		if role.Provider.Name != "" {
			list = append(list, "provider."+role.Provider.Name)
		}
	}
	if slices.ContainsFunc(s.Case.Roles, func(role testbed.RoleConfig) bool { return role.Spread && role.Index > 0 }) {
		list = append(list, "roles.distinct_hosts")
	}
	for _, need := range s.Case.Needs {
		list = append(list, need.Capability)
	}
	for _, requirement := range s.Case.Requires {
		list = append(list, requirement.Text)
	}
	seen := make(map[string]bool)
	return slices.DeleteFunc(list, func(name string) bool {
		again := seen[name]
		seen[name] = true
		return again
	})
}

// RoleNames are the names of the roles of cases, and those of counted roles without their numbers, sorted.
func RoleNames(cases []Selected) []string {
	known := make(map[string]bool)
	for _, each := range cases {
		for _, role := range each.Case.Roles {
			known[role.Name], known[role.Written()] = true, true
		}
	}
	return slices.Sorted(maps.Keys(known))
}

// Place is where a role runs.  What is zero is left to the scenario, then to the provider.
type Place struct {
	Device string
	Port   int
	// GID is an index of the port's table or an IP address.
	GID string
	// Host is the host's name where a lab has one, and Labels are those of the host, which the role's own come before.
	Host   string
	Labels map[string]string
}

// joined are labels of a host with those of a role, which come before.
func joined(ofHost, ofRole map[string]string) map[string]string {
	if len(ofHost) == 0 {
		return ofRole
	}
	all := maps.Clone(ofHost)
	maps.Copy(all, ofRole)
	return all
}

// placed is a case with its roles where they were asked to be.  On the link udp, those that were not are where another
// host reaches them.
func (c *RunConfig) placed(each Selected, on []testbed.ProviderConfig) *compile.Case {
	device, reached := each.Scenario.Compiled.Device, c.Participant.reached()
	if len(c.Places) == 0 && device == "" && reached == "" {
		return each.Case
	}
	copied := *each.Case
	copied.Roles = slices.Clone(copied.Roles)
	several := slices.ContainsFunc(on, func(c testbed.ProviderConfig) bool { return c != on[0] })
	for i := range copied.Roles {
		role := &copied.Roles[i]
		if role.Device == "" && on[i].Name == rdmacore.Verbs {
			role.Device = device
		}
		for _, name := range []string{"", role.Group, role.Name} {
			if name == "" && several && on[i].Name == rdmacore.Soft {
				continue // keys for all roles apply only to those on devices
			}
			place := c.Places[name]
			if place.Device != "" {
				role.Device, role.Port, role.GID = place.Device, place.Port, ""
			}
			if place.GID != "" {
				role.GID = place.GID
			}
			if place.Host != "" {
				role.Host = place.Host
			}
			role.Labels = joined(place.Labels, role.Labels)
		}
		if role.GID == "" && role.Device == "" && on[i].Name == rdmacore.Soft && on[i].Link == rdmacore.LinkUDP {
			role.GID = reached
		}
	}
	return &copied
}
