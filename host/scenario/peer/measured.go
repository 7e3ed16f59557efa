package peer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"rdmarun/host/printable"
	"rdmarun/host/record"
)

// longestName bounds the name and the operation of what is measured elsewhere, which stand in tables.
const longestName = 600

// longestMeasured bounds what is told of a size.  Whole histograms are the first to be left out.
const longestMeasured = 512 << 10

// TellMeasured tells the others what is measured of a size.
func TellMeasured(mailbox Mailbox, key string, found []*record.Measure) error {
	raw, err := json.Marshal(found)
	if err == nil && len(raw) > longestMeasured {
		short := make([]*record.Measure, len(found))
		for i, each := range found {
			short[i] = each.WithoutHistograms()
		}
		raw, err = json.Marshal(short)
	}
	if err != nil {
		return err
	}
	return mailbox.Tell(key, json.RawMessage(raw))
}

// ReadMeasured reads what a process has measured of a size, in a step of these roles: what can be true, of no others.
func ReadMeasured(raw json.RawMessage, process string, roles []string) (found []*record.Measure, err error) {
	if err := json.Unmarshal(raw, &found); err != nil {
		return nil, err
	}
	if len(found) == 0 || len(found) > 2 || slices.Contains(found, nil) {
		return nil, errors.New("what is measured cannot be read")
	}
	for _, m := range found {
		if err := m.Check(); err != nil {
			return nil, fmt.Errorf("the process of %s tells what cannot be true: %w", process, err)
		}
		printable.Each(&m.What, func(text string) string { return printable.Brief(text, longestName) })
		if !slices.Contains(roles, m.Role) || m.Peer != "" && !slices.Contains(roles, m.Peer) {
			return nil, fmt.Errorf(
				"the process of %s has measured from %.80q to %.80q, which are not the roles of the step", process,
				m.Role, m.Peer,
			)
		}
	}
	return found, nil
}
