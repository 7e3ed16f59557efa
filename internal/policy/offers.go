package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Offers are what a table makes of the operations of a package: each is offered by one of its rows, or excused.
type Offers struct {
	// Row is what the table calls its rows: "verb".
	Row string
	// Has reports whether the table has a row of that name.
	Has func(row string) bool
	// By are the rows by the operations that they offer.
	By map[string]string
	// Excused are reasons by operation, or by "Kind.*".
	Excused map[string]string
}

// Missing returns what is wrong: an operation that is neither offered nor excused, or both, and names of operations
// and rows that do not exist.
func (o *Offers) Missing(operations []string) []string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	for _, name := range operations {
		kind, _, _ := strings.Cut(name, ".")
		row, offered := o.By[name]
		excused := o.Excused[name] != "" || o.Excused[kind+".*"] != ""
		switch {
		case offered && excused:
			add("%s is offered by %s, and excused", name, row)
		case offered && !o.Has(row):
			add("%s: there is no %s %s", name, o.Row, row)
		case !offered && !excused:
			add("there is %s, and no %s offers it", name, o.Row)
		}
	}
	for name, row := range o.By {
		if !slices.Contains(operations, name) {
			add("there is no %s (%s %s)", name, o.Row, row)
		}
	}
	for name := range o.Excused {
		if !strings.HasSuffix(name, "*") && !slices.Contains(operations, name) {
			add("there is no %s, which is excused", name)
		}
	}
	return list
}
