package peer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"rdmarun/host/printable"
	"rdmarun/host/record"
)

// maxName bounds the name and the operation of a measurement of another process, which are shown in tables.
const maxName = 600

// maxMeasured bounds the message with the results of a size.  A longer one is sent without histograms.
const maxMeasured = 512 << 10

// SendMeasured sends the results of a size to the others.
func SendMeasured(mailbox Mailbox, key string, found []*record.Measure) error {
	raw, err := json.Marshal(found)
	if err == nil && len(raw) > maxMeasured {
		short := make([]*record.Measure, len(found))
		for i, each := range found {
			short[i] = each.WithoutHistograms()
		}
		raw, err = json.Marshal(short)
	}
	if err != nil {
		return err
	}
	return mailbox.Broadcast(key, json.RawMessage(raw))
}

// ReadMeasured decodes the results of a size that a process has measured in a step of these roles.  It rejects values
// that are impossible, and results of other roles.
func ReadMeasured(raw json.RawMessage, process string, roles []string) (found []*record.Measure, err error) {
	if err := json.Unmarshal(raw, &found); err != nil {
		return nil, err
	}
	if len(found) == 0 || len(found) > 2 || slices.Contains(found, nil) {
		return nil, errors.New("what is measured cannot be read")
	}
	for _, m := range found {
		if err := m.Check(); err != nil {
			return nil, fmt.Errorf("the process of %s reports an impossible value: %w", process, err)
		}
		printable.Each(&m.What, func(text string) string { return printable.Brief(text, maxName) })
		if !slices.Contains(roles, m.Role) || m.Peer != "" && !slices.Contains(roles, m.Peer) {
			return nil, fmt.Errorf(
				"the process of %s has measured from %.80q to %.80q, which are not the roles of the step", process,
				m.Role, m.Peer,
			)
		}
	}
	return found, nil
}
