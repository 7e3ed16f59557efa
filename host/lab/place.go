package lab

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
)

var placementKeys = []string{"hosts", "per_host", "label"}

// place reads where roles are placed.
func (r *reader) place(node *syntax.Node, lab *Lab) {
	if node == nil || !r.kind(node, syntax.Mapping, "place") {
		return
	}
	r.plain(node)
	for _, pair := range node.Pairs {
		placement, where := Placement{named: pair.Key.Span(), span: pair.Value.Span()}, pair.Value
		switch {
		case where.IsNull():
			r.errors.Report(diag.WrongShape, pair.Key.Span(), "role %s has no host", pair.Key.Value).
				WithHint("%s: HOST, [HOST, ..], {hosts: .., per_host: N} or {label: {NAME: VALUE}}", pair.Key.Value)
			continue
		case where.Kind != syntax.Mapping:
			placement.Hosts = r.words(where, "the place of a role")
		default:
			r.keys(pair.Value, placementKeys...)
			if hosts := pair.Value.Get("hosts"); hosts != nil {
				placement.Hosts, where = r.words(hosts, "hosts"), hosts
			}
			if count := pair.Value.Get("per_host"); count != nil {
				placement.PerHost = r.number(count, "per_host", 1, 1000)
			}
			if label := pair.Value.Get("label"); label != nil {
				placement.Labels = r.texts(label, "label")
			}
		}
		placement.Hosts = r.placed(placement.Hosts, where, lab)
		isKnown := !slices.ContainsFunc(placement.Hosts, func(name string) bool { return !lab.known(name) })
		if isKnown && len(placement.Labels) > 0 && !lab.Joins() && len(lab.candidates(placement)) == 0 {
			r.errors.Report(diag.NotOneOf, placement.span, "no host has those labels")
		}
		lab.Place[pair.Key.Value] = placement
	}
}

// placed are the names that the words of a placement stand for, ranges as so many.
func (r *reader) placed(words []string, node *syntax.Node, lab *Lab) (all []string) {
	for i, word := range words {
		span := node.Span()
		if len(node.Items) == len(words) {
			span = node.Items[i].Span()
		}
		names, problem := ranged(word)
		if problem == "" && len(all)+len(names) > maxHosts {
			problem = fmt.Sprintf("a role is placed on at most %d hosts", maxHosts)
		}
		if problem != "" {
			r.errors.Report(diag.WrongType, span, "%s", problem)
			return nil
		}
		all = append(all, names...)
		// or their own errors are reported
		if i := slices.IndexFunc(names, func(name string) bool { return !lab.known(name) }); i >= 0 &&
			len(lab.Hosts) > 0 {
			r.errors.Report(diag.NotOneOf, span, "there is no host %q", names[i]).WithOneOf(names[i], lab.names())
		}
	}
	return all
}

func (l *Lab) known(name string) bool { return l.Groups[name] != nil || l.Host(name) != nil }

// Host is the host of that name; nil: there is none.
func (l *Lab) Host(name string) *Host {
	if i := slices.IndexFunc(l.Hosts, func(h Host) bool { return h.Name == name }); i >= 0 {
		return &l.Hosts[i]
	}
	return nil
}

// joined is the host of the agent with that name; nil: there is none.
func (l *Lab) joined(agent string) *Host {
	if i := slices.IndexFunc(l.Hosts, func(h Host) bool { return h.Join == agent }); i >= 0 {
		return &l.Hosts[i]
	}
	return nil
}

// Joins reports whether agents of hosts have joined the lab; their labels are known once they are asked.
func (l *Lab) Joins() bool {
	return slices.ContainsFunc(l.Hosts, func(h Host) bool { return h.Join != "" })
}

// Joined adds the labels that an agent has given itself; those of its host in the file have precedence.
func (l *Lab) Joined(agent string, labels map[string]string) {
	host := l.joined(agent)
	if host == nil {
		return
	}
	all := maps.Clone(labels)
	if all == nil {
		all = make(map[string]string)
	}
	maps.Copy(all, host.Labels)
	host.Labels = all
}

func (l *Lab) names() []string {
	var names []string
	for _, h := range l.Hosts {
		names = append(names, h.Name)
	}
	return append(names, slices.Sorted(maps.Keys(l.Groups))...)
}

// Override places roles by words of a command line: "server=a", "client=a,b[1-4],n", "server=a,client=b", or
// "client=rack=r1" for hosts with a label.
func (l *Lab) Override(text string) error {
	placed := make(map[string]Placement)
	role := ""
	for piece := range strings.SplitSeq(text, ",") {
		name, host, names := strings.Cut(piece, "=")
		if names {
			role = name
		} else {
			host = piece
		}
		label, value, labelled := strings.Cut(host, "=")
		placement := placed[role]
		switch {
		case role == "" || host == "":
			return fmt.Errorf("%s: %w", text, ErrForm)
		case names && (len(placement.Hosts) > 0 || len(placement.Labels) > 0):
			return fmt.Errorf("%s: role %s has two places", text, role)
		case labelled:
			placement.Labels = map[string]string{label: value}
		default:
			names, problem := ranged(host)
			if problem != "" {
				return fmt.Errorf("%s: %s", text, problem)
			}
			if i := slices.IndexFunc(names, func(name string) bool { return !l.known(name) }); i >= 0 {
				hint := diag.Suffix(diag.OneOf(names[i], l.names()))
				return fmt.Errorf("%s: there is no host %q%s", text, names[i], hint)
			}
			placement.Hosts = append(placement.Hosts, names...)
		}
		if placed[role] = placement; len(l.candidates(placement)) == 0 {
			return fmt.Errorf("%s: no host has the label %s=%s%s", text, label, value, diag.Suffix(l.labels()))
		}
	}
	maps.Copy(l.Place, placed)
	return nil
}

// ErrForm means that a text of Override cannot be understood.
var ErrForm = errors.New("not of the form ROLE=HOST")

// RolesIn are the roles that texts of Override place.
func RolesIn(texts []string) (roles []string) {
	for piece := range strings.SplitSeq(strings.Join(texts, ","), ",") {
		if role, _, placed := strings.Cut(piece, "="); placed && !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	return roles
}

// NamesIn are the hosts that texts of Override name; none where one of them places a role by a label.
func NamesIn(texts []string) (names []string) {
	for piece := range strings.SplitSeq(strings.Join(texts, ","), ",") {
		_, host, placed := strings.Cut(piece, "=")
		if !placed {
			host = piece
		}
		if strings.Contains(host, "=") {
			return nil
		}
		all, _ := ranged(host) // Override reports an invalid range
		for _, name := range all {
			if name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// labels are some of those that hosts have.
func (l *Lab) labels() string {
	all := make(map[string]bool)
	for _, host := range l.Hosts {
		for name, value := range host.Labels {
			all[name+"="+value] = true
		}
	}
	const shown = 8
	names := slices.Sorted(maps.Keys(all))
	switch {
	case len(names) == 0:
		return "hosts have no labels"
	case len(names) > shown:
		return "there are " + strings.Join(names[:shown], ", ") + " and others"
	}
	return "there are " + strings.Join(names, ", ")
}

// candidates are the hosts of a placement, in its order.
func (l *Lab) candidates(p Placement) (names []string) {
	hosts := p.Hosts
	if len(hosts) == 0 {
		for _, h := range l.Hosts {
			hosts = append(hosts, h.Name)
		}
	}
	add := func(name string) {
		host := l.Host(name)
		for label, value := range p.Labels {
			if host.Labels[label] != value {
				return
			}
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range hosts {
		if members := l.Groups[name]; members != nil {
			for _, member := range members {
				add(member)
			}
		} else {
			add(name)
		}
	}
	return names
}

// OtherRoles is the name under which roles are placed that have no place of their own: on its hosts in turns.
const OtherRoles = "*"

// Role is a role to be placed: the instance of Group with that Index, or one that stands for itself.
type Role struct {
	Name, Group string
	Index       int
	// Number is its place among all roles.
	Number int
}

// Count is the number of instances of a role: the number that the lab sets, or one for each of its hosts.
func (l *Lab) Count(role string) int {
	placement, placed := l.Place[role]
	if !placed {
		placement = l.Place[OtherRoles] // of none: all hosts
	}
	return len(l.candidates(placement)) * max(placement.PerHost, 1)
}

// UnknownRoles are the roles that the lab places and that are none of the known.
func (l *Lab) UnknownRoles(known []string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(l.Place)), func(role string) bool {
		return role == OtherRoles || slices.Contains(known, role)
	})
}

// HostOf is the host that plays a role.
func (l *Lab) HostOf(role Role) (string, error) {
	placement, placed := l.Place[role.Name]
	index := 0
	if !placed && role.Group != "" {
		placement, placed = l.Place[role.Group]
		index = role.Index
	}
	if !placed {
		if placement, placed = l.Place[OtherRoles]; placed {
			index = role.Number
		}
	}
	if !placed && len(l.Hosts) == 1 {
		return l.Hosts[0].Name, nil
	}
	if !placed {
		return "", fmt.Errorf("role %s has no host", role.written())
	}
	hosts := l.candidates(placement)
	if len(hosts) == 0 {
		return "", fmt.Errorf("role %s has no host: no host has those labels", role.written())
	}
	if placement.PerHost == 0 {
		return hosts[index%len(hosts)], nil
	}
	if index/placement.PerHost >= len(hosts) {
		return "", fmt.Errorf(
			"role %s has more instances than %d hosts with %d each have room for", role.written(), len(hosts),
			placement.PerHost,
		)
	}
	return hosts[index/placement.PerHost], nil
}

func (r Role) written() string {
	if r.Group != "" {
		return r.Group
	}
	return r.Name
}
