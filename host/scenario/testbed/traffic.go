package testbed

import (
	"slices"

	"rdmarun/rdmacore"
)

// Traffic is how much of one operation was posted.
type Traffic struct {
	Operation string `json:"operation"`
	Count     int    `json:"count"`
	Bytes     int64  `json:"bytes"`
}

// Posted counts a work request.
func (l *Lab) Posted(opcode rdmacore.Opcode, bytes int) {
	entry := l.traffic[opcode]
	if entry == nil {
		entry = &Traffic{Operation: opcode.String()}
		l.traffic[opcode] = entry
	}
	entry.Count++
	entry.Bytes += int64(bytes)
}

// Traffic lists what was posted, the most frequent operation first.
func (l *Lab) Traffic() []Traffic {
	var list []Traffic
	for _, entry := range l.traffic {
		list = append(list, *entry)
	}
	slices.SortFunc(list, func(a, b Traffic) int {
		if a.Count != b.Count {
			return b.Count - a.Count
		}
		if a.Operation < b.Operation {
			return -1
		}
		return 1
	})
	return list
}
