package trace

import (
	"fmt"
	"slices"
	"strings"

	"rdmarun/host/trace/calls"
)

// Filter says which calls are shown.
type Filter struct {
	shown map[string]bool // by name; nil: all
}

// BufferGroup is the group of the calls of Options.Memory, which filters do not know.
const BufferGroup = "buffer"

// FilterNames are the names that a filter can have: of groups and of calls.
func FilterNames() (groups, names []string) {
	table, err := calls.Load()
	if err != nil {
		return nil, nil
	}
	for _, call := range table.Calls {
		if call.Group == BufferGroup {
			continue
		}
		if !slices.Contains(groups, call.Group) {
			groups = append(groups, call.Group)
		}
		if !slices.Contains(names, call.Shown) {
			names = append(names, call.Shown)
		}
	}
	return groups, names
}

// NameError is the name of no call and no group.
type NameError struct{ Name string }

func (e *NameError) Error() string { return fmt.Sprintf("no call and no group is called %q", e.Name) }

// ParseFilter reads names of groups and calls with commas between them. "!" in front of a name excludes it. "trace=" in
// front of all is as strace has it.
func ParseFilter(expressions []string) (f *Filter, err error) {
	table, err := calls.Load()
	if err != nil {
		return nil, err
	}
	f = &Filter{}
	for _, expression := range expressions {
		for word := range strings.SplitSeq(strings.TrimPrefix(expression, "trace="), ",") {
			name, exclude := strings.CutPrefix(strings.TrimSpace(word), "!")
			var matched []string
			for _, call := range table.Calls {
				if call.Group != BufferGroup && (name == call.Shown || name == call.Group || name == "all") {
					matched = append(matched, call.Shown)
				}
			}
			if len(matched) == 0 {
				return nil, &NameError{name}
			}
			f.add(matched, exclude, table)
		}
	}
	return f, nil
}

func (f *Filter) add(matched []string, exclude bool, table *calls.Table) {
	if f.shown == nil {
		f.shown = map[string]bool{}
		for _, call := range table.Calls {
			f.shown[call.Shown] = exclude // what is excluded is excluded from all
		}
	}
	for _, name := range matched {
		f.shown[name] = !exclude
	}
}

// Shows reports whether a call is shown. What is missing or not seen is always said.
func (f *Filter) Shows(call *Call) bool {
	return call.Note != "" || f == nil || f.shown == nil || f.shown[call.Name]
}
