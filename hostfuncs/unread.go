package hostfuncs

import (
	"context"
	"errors"
	"slices"

	"rdmarun/rdmacore"
)

// eventChannel is an event channel of the guest's.  A wait with timeout 0 reads whatever has come, since the
// core's waits do not look at all once their time is over; what the guest did not ask for is kept here.
type eventChannel struct {
	core   *rdmacore.EventChannel
	unread []*rdmacore.Event
}

// owner is the id by which an event is asked for.
func owner(event *rdmacore.Event) *rdmacore.ID {
	if event.Type == rdmacore.EventConnectRequest {
		return event.Listener
	}
	return event.ID
}

// take takes the first unread event of id, or of any with nil; nil when there is none.
func (c *eventChannel) take(id *rdmacore.ID) *rdmacore.Event {
	at := slices.IndexFunc(c.unread, func(event *rdmacore.Event) bool { return id == nil || owner(event) == id })
	if at < 0 {
		return nil
	}
	event := c.unread[at]
	c.unread = slices.Delete(c.unread, at, at+1)
	return event
}

// poll takes the first event of id, or of any with nil, that has come by now; nil when there is none.
func (c *eventChannel) poll(id *rdmacore.ID) (*rdmacore.Event, error) {
	if event := c.take(id); event != nil {
		return event, nil
	}
	events, err := c.core.Pending()
	c.unread = append(c.unread, events...)
	if err != nil {
		return nil, err
	}
	return c.take(id), nil
}

// wait waits for an event of id, or of any with nil.
func (c *eventChannel) wait(ctx context.Context, id *rdmacore.ID) (*rdmacore.Event, error) {
	if event := c.take(id); event != nil {
		return event, nil
	}
	if id == nil {
		return c.core.GetEvent(ctx)
	}
	return c.core.Wait(ctx, id)
}

// release acknowledges what the guest has not read of an id, for which the id could not be destroyed.
func (c *eventChannel) release(id *rdmacore.ID) error {
	var errs []error
	for _, event := range c.unread {
		if owner(event) == id && event.Held() {
			errs = append(errs, event.Ack())
		}
	}
	return errors.Join(errs...)
}

// forget drops the unread events of an id that is gone.  Requests among them have made endpoints that the
// guest never heard of; destroying those rejects the peers, as rdma_destroy_id(3) does with unread requests.
func (c *eventChannel) forget(id *rdmacore.ID) error {
	var errs []error
	for event := c.take(id); event != nil; event = c.take(id) {
		if event.Type == rdmacore.EventConnectRequest {
			errs = append(errs, event.ID.DestroyEP(), c.forget(event.ID))
		}
	}
	return errors.Join(errs...)
}

func (c *eventChannel) close() error { return c.core.Close() }
