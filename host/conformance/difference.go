package conformance

import (
	"fmt"
	"slices"

	"rdmarun/host/record"
)

// differences are the sentences that tell two traces apart, none when they are equal.  They name no line of
// the scenario, so that they stay true when it is edited elsewhere.
func differences(a, b *Trace, names [2]string) []string {
	var found []string
	roles := slices.Clone(a.roles)
	for _, role := range b.roles {
		if !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	for _, role := range roles {
		found = append(found, roleDifferences(role, a.calls[role], b.calls[role], names)...)
	}
	if a.Status != b.Status {
		found = append(found, differ("the case", names, string(a.Status), string(b.Status)))
	}
	return found
}

func roleDifferences(role string, a, b []call, names [2]string) []string {
	var found []string
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return append(found, differ(b[i].title(role), names, nothing, b[i].outcome()))
		case i >= len(b):
			return append(found, differ(a[i].title(role), names, a[i].outcome(), nothing))
		case a[i].action != b[i].action:
			// What follows is no longer the same sequence.
			return append(found, differ(role, names, a[i].action, b[i].action))
		}
		found = append(found, callDifferences(role, &a[i], &b[i], names)...)
	}
	return found
}

func callDifferences(role string, a, b *call, names [2]string) []string {
	title := a.title(role)
	if a.errno != b.errno {
		return []string{differ(title, names, a.outcome(), b.outcome())}
	}
	if len(a.fields) == 0 || len(b.fields) == 0 {
		if len(a.fields) != len(b.fields) || a.ok != b.ok {
			return []string{differ(title, names, a.outcome(), b.outcome())}
		}
		return nil
	}
	var found []string
	for _, field := range a.fields {
		if other := value(b.fields, field.Name); other != field.Value {
			found = append(found, differ(title+", "+field.Name, names, field.Value, other))
		}
	}
	for _, field := range b.fields {
		if value(a.fields, field.Name) == nothing {
			found = append(found, differ(title+", "+field.Name, names, nothing, field.Value))
		}
	}
	return found
}

// nothing stands where one run has no value, or did not get that far.
const nothing = "nothing"

func value(fields []record.Field, name string) string {
	for _, field := range fields {
		if field.Name == name {
			return field.Value
		}
	}
	return nothing
}

func differ(what string, names [2]string, a, b string) string {
	return fmt.Sprintf("%s: %s %s, %s %s", what, names[0], a, names[1], b)
}

// title names a call by its role and its number among the role's calls of that kind.
func (c *call) title(role string) string {
	if role == "" {
		return fmt.Sprintf("%s %d", c.action, c.number)
	}
	return fmt.Sprintf("%s %s %d", role, c.action, c.number)
}

// outcome is a call's result in a word.
func (c *call) outcome() string {
	switch {
	case c.errno != "":
		return c.errno
	case len(c.fields) > 0:
		return c.fields[0].Value
	case c.ok:
		return "success"
	}
	return "failure"
}
