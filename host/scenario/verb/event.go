package verb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rdmarun/host/scenario/explain"
	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

// DefaultWithin is how long a verb waits when the scenario does not say.
const DefaultWithin = 5 * time.Second

func within() Argument {
	return Argument{Name: "within", Type: Duration, Default: DefaultWithin, Min: 1, Max: int64(24 * time.Hour), Doc: "how long to wait"}
}

// eventVerbs wait for what the connection manager says.
func eventVerbs() []Verb {
	return []Verb{waitAsyncVerb(), {
		Name: "wait_event", Manual: "rdma_get_cm_event(3)", Waits: true, Yields: NewEndpoint, Run: waitEvent,
		Doc: "Wait for the next event of an endpoint.  A CONNECT_REQUEST comes to the listener, and `as` names the new endpoint.",
		Arguments: []Argument{
			{Name: "ep", Type: Endpoint, Required: true, Doc: "the endpoint, or the listener"},
			{Name: "type", Type: Word, Words: eventNames(), Doc: "what must come; without it anything may"},
			within(),
		},
		Results: eventResults(),
	}}
}

// eventResults are the fields of an event.
func eventResults() []Result {
	return []Result{
		{Name: "type", Type: Word, Words: eventNames(), Doc: "the event"},
		{Name: "status", Type: Status, Default: 0, Doc: "0, an errno, or the peer's reason"},
		{Name: "private_data", Type: Data, Doc: "what the peer sent, padded with zeros"},
		{Name: "private_data_len", Type: Integer, Doc: "bytes of private_data, padding included"},
		{Name: "responder_resources", Type: Integer, Doc: "as this side would give them: the peer's initiator_depth"},
		{Name: "initiator_depth", Type: Integer, Doc: "as this side would give it: the peer's responder_resources"},
		{Name: "flow_control", Type: Integer, Doc: "hardware flow control"},
		{Name: "retry_count", Type: Integer, Doc: "repeats of an unanswered packet"},
		{Name: "rnr_retry_count", Type: Integer, Doc: "repeats of a send that finds no receive"},
		{Name: "qp_num", Type: Integer, Varies: true, Doc: "number of the peer's queue pair; of a datagram service and of a group, where to send to"},
		{Name: "srq", Type: Boolean, Doc: "the peer's queue pair receives from a shared receive queue"},
		{Name: "qkey", Type: Integer, Hex: true, Doc: "key of a datagram service or of a group"},
	}
}

func waitEvent(ctx context.Context, call *Call) (Outcome, error) {
	endpoint, err := call.Endpoint("ep")
	if err != nil {
		return Outcome{}, err
	}
	wanted := call.Text("type")
	waiting, cancel := call.Lab.Clock().WithTimeout(ctx, call.Duration("within"))
	defer cancel()
	var event *rdmacore.Event
	call.Lab.Outside(func() { event, err = endpoint.ID().Channel().Wait(waiting, endpoint.ID()) })
	switch {
	case err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return Outcome{}, &lab.Failure{
			What:     "no event",
			Expected: orElse(wanted, "an event"),
			Got:      call.nothingCame(),
			Hint:     silence(call, endpoint, wanted),
			Absent:   true,
		}
	case err != nil:
		return Outcome{}, err
	}
	return tookEvent(call, event, wanted)
}

// tookEvent is the outcome of an event that was read.
func tookEvent(call *Call, event *rdmacore.Event, wanted string) (Outcome, error) {
	call.Role.Read(event)
	name := event.Type.String()
	if owner := call.Role.Owner(event); owner != nil && event.UD != nil {
		owner.Reach(event.UD)
	}
	if wanted != "" && name != wanted {
		if event.Type == rdmacore.EventConnectRequest {
			call.Role.Adopt("the connection of an unexpected request", event.ID)
		}
		return Outcome{}, &lab.Failure{
			What:     "wrong event",
			Expected: wanted,
			Got:      withStatus(event),
			Hint:     explain.Event(name, event.Status),
		}
	}
	outcome := Outcome{Fields: eventFields(event), NoDefaults: failureEvent(event.Type), Summary: func() string { return withStatus(event) }}
	if event.Type == rdmacore.EventConnectRequest {
		listener := call.Role.Owner(event)
		child := call.Role.Adopt("a connection", event.ID)
		child.Listener = listener
		outcome.Endpoint = child
	}
	return outcome, nil
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// failureEvent tells whether an event reports a failure, so that a status is no surprise: who waits for
// REJECTED says with `expect` which status it must have.
func failureEvent(t rdmacore.EventType) bool {
	switch t {
	case rdmacore.EventAddrError, rdmacore.EventRouteError, rdmacore.EventConnectError,
		rdmacore.EventUnreachable, rdmacore.EventRejected, rdmacore.EventMulticastError:
		return true
	}
	return false
}

func withStatus(event *rdmacore.Event) string {
	if event.Status == 0 {
		return event.Type.String()
	}
	return event.Type.String() + " status " + rdmacore.StatusString(event.Type, event.Status, rdmacore.PortSpaceTCP)
}

func eventFields(event *rdmacore.Event) []any {
	return []any{
		event.Type.String(), event.Status, event.PrivateData, len(event.PrivateData),
		int(event.Conn.ResponderResources), int(event.Conn.InitiatorDepth), int(event.Conn.FlowControl),
		int(event.Conn.RetryCount), int(event.Conn.RNRRetryCount), int(event.Conn.QPNum), event.Conn.SRQ, datagramKey(event),
	}
}

func datagramKey(event *rdmacore.Event) any {
	if event.UD == nil {
		return nil
	}
	return int(event.UD.QKey)
}

// silence looks for why an event did not come.
func silence(call *Call, endpoint *lab.Endpoint, wanted string) string {
	if wanted == "CONNECT_REQUEST" {
		return fmt.Sprintf("nobody connected to %s; is the client's address and port that of the listener, and did its connect step run?", endpoint.ID().LocalAddr())
	}
	for _, role := range call.Lab.Roles() {
		for _, other := range role.Endpoints() {
			if other.Listener != nil && !other.Answered {
				return fmt.Sprintf("%s took a CONNECT_REQUEST (%s), but neither accept nor reject has followed", role.Name, other.Name)
			}
		}
	}
	switch wanted {
	case "DISCONNECTED":
		if endpoint.Disconnected {
			return "a disconnect is answered by the peer's own disconnect or destroy_ep; until then the request is repeated, for over a minute (rdma_disconnect(3))"
		}
		return "neither side has called disconnect, or the peer is gone without a word (that takes over a minute to notice)"
	case "ESTABLISHED":
		return "the peer has not answered the request; a full backlog, and a peer that never reads its request, look like this"
	}
	return ""
}
