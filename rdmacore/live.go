package rdmacore

import (
	"fmt"
	"strings"
)

// Kind is a kind of core object.
type Kind int

// Live is the number of live objects of each kind; kinds without any are absent.
type Live map[Kind]int64

// Total is the number of live objects.
func (l Live) Total() int64 {
	var total int64
	for _, count := range l {
		total += count
	}
	return total
}

// String lists the counts in the order of the kinds, "2 QP, 1 MR", or says "none".
func (l Live) String() string {
	var parts []string
	for _, row := range kindNames.rows {
		if count := l[row.value]; count != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count, row.name))
		}
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, ", ")
}
