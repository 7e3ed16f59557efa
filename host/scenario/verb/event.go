package verb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rdmarun/host/scenario/explain"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// DefaultWithin is how long a verb waits when the scenario does not say.
const DefaultWithin = 5 * time.Second

// within is the argument of verbs that wait.
type within struct {
	Within time.Duration `arg:"within" default:"5s" min:"1ns" max:"24h" doc:"how long to wait"`
}

// await runs a wait without the lock of the testbed, within the time of the step.  late is told when that is over.
func (w *within) await(ctx context.Context, call *Call, wait func(context.Context) error, late *testbed.Failure) error {
	waiting, cancel := call.Testbed.Clock().WithTimeout(ctx, w.Within)
	defer cancel()
	var err error
	call.Testbed.Unlocked(func() { err = wait(waiting) })
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		late.Got, late.Absent = w.nothingCame(), true
		return late
	}
	return err
}

// nothingCame is what a wait got that took all its time.
func (w *within) nothingCame() string { return "nothing within " + quantity.Time(w.Within) }

// eventVerbs wait for what the connection manager and the device say, and acknowledge it.
func eventVerbs() []Verb {
	return []Verb{
		define(Verb{
			Name: "wait_event", Manual: "rdma_get_cm_event(3)", Waits: true, Yields: NewEndpoint,
			Doc: "Wait for the next event of an endpoint.  A CONNECT_REQUEST comes to the listener, and `as` names the new endpoint.",
		}, waitEvent),
		define(Verb{
			Name: "get_event", Manual: "rdma_get_cm_event(3)", Waits: true, Yields: NewEndpoint,
			Doc: "Wait for the next event of the role, of whichever endpoint; `as` names the one that a CONNECT_REQUEST brings.",
		}, getEvent),
		define(Verb{
			Name: "hold_events", Manual: "rdma_ack_cm_event(3)", Scalar: "hold",
			Doc: "Leave events unacknowledged that are read from now on, until ack_event; an id with such an event cannot be destroyed.",
		}, action(func(_ context.Context, call *Call, args *struct {
			Hold bool `arg:"hold,required" doc:"false: acknowledge at once again"`
		}) error {
			return call.Role.HoldEvents(args.Hold)
		})),
		define(Verb{
			Name: "ack_event", Manual: "rdma_ack_cm_event(3)",
			Doc: "Acknowledge the oldest event of an endpoint that is not acknowledged.",
		}, action(func(_ context.Context, call *Call, args *theEndpoint) error { return call.Role.AckEvent(args.EP) })),
		define(Verb{
			Name: "wait_async", Manual: "ibv_get_async_event(3)", Waits: true, Yields: Value,
			Doc: "Wait for the next asynchronous event of the role's queue pairs and device.",
		}, waitAsync),
		define(Verb{
			Name: "complete", Manual: "rdma_create_id(3)", Waits: true,
			Doc: "Wait for the end of the last call of a synchronous id, whose errno it has; at once when none is under way.",
		}, action(complete)),
		define(Verb{
			Name: "get_request", Manual: "rdma_get_request(3)", Waits: true, Yields: NewEndpoint,
			Doc: "Wait for the next connection request of a synchronous listener; `as` names the new endpoint.",
		}, getRequest),
	}
}

// eventFields are those of struct rdma_cm_event.
type eventFields struct {
	Type               rdmacore.EventType `result:"type" doc:"the event"`
	Status             eventStatus        `result:"status" default:"0" doc:"0, an errno, or the peer's reason"`
	PrivateData        []byte             `result:"private_data" doc:"what the peer sent, padded with zeros"`
	PrivateDataLen     int                `result:"private_data_len" doc:"bytes of private_data, padding included"`
	ResponderResources uint8              `result:"responder_resources" doc:"as this side would give them: the peer's initiator_depth"`
	InitiatorDepth     uint8              `result:"initiator_depth" doc:"as this side would give it: the peer's responder_resources"`
	FlowControl        uint8              `result:"flow_control" doc:"hardware flow control"`
	RetryCount         uint8              `result:"retry_count" doc:"repeats of an unanswered packet"`
	RNRRetryCount      uint8              `result:"rnr_retry_count" doc:"repeats of a send that finds no receive"`
	QPNum              uint32             `result:"qp_num,varies" doc:"number of the peer's queue pair; of a datagram service and of a group, where to send to"`
	SRQ                bool               `result:"srq" doc:"the peer's queue pair receives from a shared receive queue"`
	QKey               Optional[uint32]   `result:"qkey,hex" doc:"key of a datagram service or of a group"`
}

// wantedEvent is the argument of what must come.
type wantedEvent struct {
	Type Optional[rdmacore.EventType] `arg:"type" doc:"what must come; without it anything may"`
}

func (w *wantedEvent) String() string {
	if w.Type.Given {
		return w.Type.Value.String()
	}
	return "an event"
}

func waitEvent(ctx context.Context, call *Call, args *struct {
	EP *testbed.Endpoint `arg:"ep,required" doc:"the endpoint, or the listener"`
	wantedEvent
	within
}) (eventFields, error) {
	var event *rdmacore.Event
	late := &testbed.Failure{What: "no event", Expected: args.wantedEvent.String()}
	err := args.await(ctx, call, func(ctx context.Context) (err error) {
		event, err = args.EP.ID().Channel().Wait(ctx, args.EP.ID())
		return err
	}, late)
	if late.Absent {
		late.Hint = noEventHint(call, args.EP, args.Type)
	}
	if err != nil {
		return eventFields{}, err
	}
	return readEvent(call, event, &args.wantedEvent)
}

func getEvent(ctx context.Context, call *Call, args *struct {
	wantedEvent
	within
}) (result struct {
	eventFields
	EP string `result:"ep" doc:"the endpoint; the listener of a CONNECT_REQUEST"`
}, err error) {
	var event *rdmacore.Event
	err = args.await(ctx, call, func(ctx context.Context) (err error) {
		event, err = call.Role.Channel().GetEvent(ctx)
		return err
	}, &testbed.Failure{What: "no event", Expected: args.wantedEvent.String()})
	if err != nil {
		return result, err
	}
	if owner := call.Role.Owner(event); owner != nil {
		result.EP = owner.Name
	}
	result.eventFields, err = readEvent(call, event, &args.wantedEvent)
	return result, err
}

// readEvent is the result of an event that was read.
func readEvent(call *Call, event *rdmacore.Event, wanted *wantedEvent) (eventFields, error) {
	call.Role.Read(event)
	if owner := call.Role.Owner(event); owner != nil && event.UD != nil {
		owner.Reach(event.UD)
	}
	if wanted.Type.Given && event.Type != wanted.Type.Value {
		if event.Type == rdmacore.EventConnectRequest {
			call.Role.Adopt("the connection of an unexpected request", event.ID)
		}
		return eventFields{}, &testbed.Failure{
			What:     "wrong event",
			Expected: wanted.String(),
			Got:      withStatus(event),
			Hint:     explain.Event(event.Type.String(), event.Status),
		}
	}
	call.Outcome.NoDefaults = failureEvent(event.Type)
	call.Outcome.Summary = func() string { return withStatus(event) }
	if event.Type == rdmacore.EventConnectRequest {
		listener := call.Role.Owner(event)
		child := call.Role.Adopt("a connection", event.ID)
		child.Listener = listener
		call.Outcome.Made = child
	}
	conn := &event.Conn
	fields := eventFields{
		Type: event.Type, Status: eventStatus(event.Status), PrivateData: event.PrivateData, PrivateDataLen: len(event.PrivateData),
		ResponderResources: conn.ResponderResources, InitiatorDepth: conn.InitiatorDepth, FlowControl: conn.FlowControl,
		RetryCount: conn.RetryCount, RNRRetryCount: conn.RNRRetryCount, QPNum: conn.QPNum, SRQ: conn.SRQ,
	}
	if event.UD != nil {
		fields.QKey = some(event.UD.QKey)
	}
	return fields, nil
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

// noEventHint looks for why an event did not come.
func noEventHint(call *Call, endpoint *testbed.Endpoint, wanted Optional[rdmacore.EventType]) string {
	if wanted.Given && wanted.Value == rdmacore.EventConnectRequest {
		return fmt.Sprintf("nobody connected to %s; is the client's address and port that of the listener, and did its connect step run?", endpoint.ID().LocalAddr())
	}
	for _, role := range call.Testbed.Roles() {
		for _, other := range role.Endpoints() {
			if other.Listener != nil && !other.Answered {
				return fmt.Sprintf("%s took a CONNECT_REQUEST (%s), but neither accept nor reject has followed", role.Name, other.Name)
			}
		}
	}
	switch {
	case !wanted.Given:
	case wanted.Value == rdmacore.EventDisconnected && endpoint.Disconnected:
		return "a disconnect is answered by the peer's own disconnect or destroy_ep; until then the request is repeated, for over a minute (rdma_disconnect(3))"
	case wanted.Value == rdmacore.EventDisconnected:
		return "neither side has called disconnect, or the peer is gone without a word (that takes over a minute to notice)"
	case wanted.Value == rdmacore.EventEstablished:
		return "the peer has not answered the request; a full backlog, and a peer that never reads its request, look like this"
	}
	return ""
}

// asyncEvent is struct ibv_async_event.
type asyncEvent struct {
	Type  rdmacore.AsyncEventType `result:"type" doc:"the event"`
	QPNum Optional[uint32]        `result:"qp_num,varies" doc:"the queue pair that it concerns, if it concerns one"`
	Port  Optional[int]           `result:"port" doc:"the port that it concerns, if it concerns one"`
}

func waitAsync(ctx context.Context, call *Call, args *struct {
	Type Optional[rdmacore.AsyncEventType] `arg:"type" doc:"what must come; without it anything may"`
	within
}) (asyncEvent, error) {
	waiting, cancel := call.Testbed.Clock().WithTimeout(ctx, args.Within)
	defer cancel()
	event, came, err := call.Role.WaitAsync(waiting)
	wanted := "an event"
	if args.Type.Given {
		wanted = args.Type.Value.String()
	}
	switch {
	case err != nil:
		return asyncEvent{}, err
	case !came && ctx.Err() != nil:
		return asyncEvent{}, ctx.Err()
	case !came:
		return asyncEvent{}, &testbed.Failure{
			What:     "no asynchronous event",
			Expected: wanted,
			Got:      args.nothingCame(),
			Hint:     "not every device raises every event; rdma_rxe has no QP_ACCESS_ERR and QP_REQ_ERR",
			Absent:   true,
		}
	case args.Type.Given && event.Type != args.Type.Value:
		return asyncEvent{}, &testbed.Failure{What: "wrong asynchronous event", Expected: wanted, Got: event.Type.String()}
	}
	call.Outcome.Summary = event.Type.String
	result := asyncEvent{Type: event.Type}
	if event.QP != nil {
		result.QPNum = some(event.QP.Num())
	}
	if event.Port != 0 {
		result.Port = some(event.Port)
	}
	return result, nil
}

func complete(ctx context.Context, call *Call, args *struct {
	theEndpoint
	within
}) error {
	return args.await(ctx, call, args.EP.ID().Complete, &testbed.Failure{What: "the call has no end", Expected: "its end"})
}

func getRequest(ctx context.Context, call *Call, args *struct {
	theEndpoint
	within
}) (result struct {
	PrivateData Optional[[]byte] `result:"private_data" doc:"what the peer sent, padded with zeros"`
}, err error) {
	var child *rdmacore.ID
	err = args.await(ctx, call, func(ctx context.Context) (err error) {
		child, err = args.EP.ID().GetRequest(ctx)
		return err
	}, &testbed.Failure{
		What: "no connection request", Expected: "a request", Hint: noEventHint(call, args.EP, some(rdmacore.EventConnectRequest)),
	})
	if err != nil {
		return result, err
	}
	made := call.Role.Adopt("a connection", child)
	made.Listener = args.EP
	call.Outcome.Made = made
	if event := child.Event(); event != nil {
		result.PrivateData = some(event.PrivateData)
	}
	return result, nil
}
