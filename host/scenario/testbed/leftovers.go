package testbed

import (
	"fmt"

	"rdmarun/rdmacore"
)

// Leftovers lists what nobody asked for: completions on a queue and unread events.  A test that passes
// and leaves messages unread has not seen what happened.
func (t *Testbed) Leftovers() []string {
	found := append(t.lost, t.asyncLeftovers()...)
	for _, role := range t.roles {
		if role.dead {
			continue
		}
		if role.guest != nil {
			if left := role.guest.leftover(); left != "" {
				found = append(found, left)
			}
			continue
		}
		for _, endpoint := range role.living {
			found = append(found, endpoint.leftovers()...)
		}
		found = append(found, role.unreadEvents()...)
	}
	t.lost = nil
	return found
}

// mostNamed bounds how many guests are named of those that a case was cut off with.
const mostNamed = 10

// RunningGuests names the guests that no step has waited for, and that still run: of many, the first.
func (t *Testbed) RunningGuests() []string {
	var found []string
	for _, role := range t.roles {
		if role.guest != nil && role.guest.Running() {
			found = append(found, role.guest.stillRuns())
		}
	}
	if more := len(found) - mostNamed; more > 0 {
		found = append(found[:mostNamed], fmt.Sprintf("and %d guests more", more))
	}
	return found
}

// leftovers takes what is on the endpoint's completion queues.
func (e *Endpoint) leftovers() (found []string) {
	if e.IgnoreLeftovers {
		return nil
	}
	var batch [16]rdmacore.WC
	for _, direction := range []string{"send", "recv"} {
		cq, err := e.CQ(direction)
		for n := 1; err == nil && n > 0; {
			n, err = cq.Poll(batch[:])
			for _, wc := range batch[:n] {
				text := fmt.Sprintf("%s %s: a completion on the %s queue: wr_id %d %s", e.Role.Name, e.Name, direction, wc.WRID, wc.Status)
				if wc.Status == rdmacore.WCSuccess {
					text += " " + wc.Opcode.String()
				}
				found = append(found, text)
			}
		}
	}
	return found
}

// unreadEvents takes what is on the role's event channel, and frees the connections that unread
// requests brought.
func (r *Role) unreadEvents() []string {
	events, err := r.channel.Pending()
	if err != nil {
		return []string{fmt.Sprintf("%s: the event channel cannot be read: %v", r.Name, err)}
	}
	var found []string
	for _, event := range events {
		r.Read(event)
		owner := r.Owner(event)
		if event.Type == rdmacore.EventConnectRequest {
			r.Adopt("an unread connection request", event.ID)
		}
		if event.Type == rdmacore.EventTimewaitExit || owner != nil && owner.IgnoreLeftovers {
			continue // TIMEWAIT_EXIT comes seconds after every disconnect, and nobody waits for it
		}
		where := r.Name
		if owner != nil {
			where += " " + owner.Name
		}
		text := fmt.Sprintf("%s: an unread event: %s", where, event.Type)
		if event.Status != 0 {
			text += fmt.Sprintf(" status %s", rdmacore.StatusString(event.Type, event.Status, rdmacore.PortSpaceTCP))
		}
		found = append(found, text)
	}
	return found
}

// Owner is the endpoint that an event belongs to: the listener for a connection request.
func (r *Role) Owner(event *rdmacore.Event) *Endpoint {
	for _, endpoint := range r.living {
		if endpoint.id == event.ID || endpoint.id == event.Listener {
			return endpoint
		}
	}
	return nil
}
