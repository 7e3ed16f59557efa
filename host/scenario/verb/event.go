package verb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"rdmarun/host/scenario/explain"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// within is the argument of verbs that wait.
type within struct {
	Within time.Duration `arg:"within" default:"5s" min:"1ns" max:"24h" doc:"how long to wait"`
}

// await releases the lock of the testbed and waits, at most for the time of the step; late is the failure when that has
// passed.
func (w *within) await(ctx context.Context, call *Call, wait func(context.Context) error, late *testbed.Failure) error {
	return w.awaitLocked(ctx, call, func(ctx context.Context) (err error) {
		call.Testbed.Unlocked(func() { err = wait(ctx) })
		return err
	}, late)
}

// awaitLocked is await for a wait that releases the lock itself.
func (w *within) awaitLocked(
	ctx context.Context, call *Call, wait func(context.Context) error, late *testbed.Failure,
) error {
	waiting, cancel := call.Testbed.Clock().WithTimeout(ctx, w.Within)
	defer cancel()
	err := wait(waiting)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		late.Got = cmp.Or(late.Got, "nothing within "+quantity.Time(w.Within))
		late.Absent, late.Late = true, true
		return late
	}
	return err
}

// eventVerbs wait for events of the connection manager and of the device, and acknowledge them.
var eventVerbs = []Verb{
	ask(WaitEvent, "rdma_get_cm_event(3)",
		"Wait for the next event of an endpoint.  A CONNECT_REQUEST comes to the listener, and `as` names the new "+
			"endpoint.",
		waitEvent).making(Endpoint),
	ask("get_event", "rdma_get_cm_event(3)",
		"Wait for the next event of the role, of whichever endpoint; `as` names the one that a CONNECT_REQUEST brings.",
		getEvent).making(Endpoint),
	act("hold_events", "rdma_ack_cm_event(3)",
		"Leave events unacknowledged that are read from now on, until ack_event; an id with such an event cannot be "+
			"destroyed.  The role may be a program on soft, which goes on as if its acknowledgements had an effect.",
		func(_ context.Context, call *Call, args *struct {
			Hold bool `arg:"hold,required" doc:"false: acknowledge at once again"`
		}) error {
			return call.Role.HoldEvents(args.Hold)
		}).scalar("hold").orProgram(),
	onEndpoint("ack_event", "rdma_ack_cm_event(3)", "Acknowledge the oldest event of an endpoint that is not "+
		"acknowledged.",
		func(ep *testbed.Endpoint, _ *none) error { return ep.Role.AckEvent(ep) }),
	ask(
		"wait_async", "ibv_get_async_event(3)",
		"Wait for the next asynchronous event of the role's queue pairs and device.", waitAsync,
	),
	act("complete", "rdma_create_id(3)",
		"Wait for the end of the last call of a synchronous id, and return its errno; at once when none is under way.",
		func(ctx context.Context, call *Call, args *struct {
			theEndpoint
			within
		}) error {
			return args.await(ctx, call, args.EP.ID().Complete, &testbed.Failure{
				What: "the call has no end", Expected: "its end",
			})
		}),
	ask(GetRequest, "rdma_get_request(3)",
		"Wait for the next connection request of a synchronous listener; `as` names the new endpoint.",
		getRequest).making(Endpoint),
}

// eventFields are those of struct rdma_cm_event.
type eventFields struct {
	Type               rdmacore.EventType `result:"type" doc:"the event"`
	Status             eventStatus        `result:"status" default:"0" doc:"0, an errno, or the peer's reason"`
	PrivateData        []byte             `result:"private_data" doc:"private data of the peer, padded with zeros"`
	PrivateDataLen     int                `result:"private_data_len" doc:"bytes of private_data, padding included"`
	ResponderResources uint8              `result:"responder_resources" doc:"as this side would give them: the peer's initiator_depth"`
	InitiatorDepth     uint8              `result:"initiator_depth" doc:"as this side would give it: the peer's responder_resources"`
	FlowControl        uint8              `result:"flow_control" doc:"hardware flow control"`
	RetryCount         uint8              `result:"retry_count" doc:"repeats of an unanswered packet"`
	RNRRetryCount      uint8              `result:"rnr_retry_count" doc:"repeats of a send that finds no receive"`
	QPNum              uint32             `result:"qp_num,varies" doc:"number of the peer's queue pair; of a datagram service and of a group, where to send to"`
	SRQ                bool               `result:"srq" doc:"the peer's queue pair receives from a shared receive queue"`
	QKey               optional[uint32]   `result:"qkey,hex" doc:"key of a datagram service or of a group"`
	owner              string             // the endpoint's name
}

func (f eventFields) summary() string { return withStatus(f.Type, int(f.Status)) }

// expectedEvent is the event that a step waits for, for its failure.
func expectedEvent[T fmt.Stringer](wanted optional[T]) string {
	if wanted.Given {
		return wanted.Value.String()
	}
	return "an event"
}

func waitEvent(ctx context.Context, call *Call, args *struct {
	EP *testbed.Endpoint `arg:"ep,required" doc:"the endpoint, or the listener"`
	eventWait
}) (eventFields, error) {
	late := &testbed.Failure{}
	fields, err := args.next(ctx, call, late, func(ctx context.Context) (*rdmacore.Event, error) {
		return args.EP.ID().Channel().Wait(ctx, args.EP.ID())
	})
	if late.Absent {
		late.Hint = noEventHint(call, args.EP, args.Type)
	}
	return fields, err
}

func getEvent(ctx context.Context, call *Call, args *eventWait) (result struct {
	eventFields
	EP string `result:"ep" doc:"the endpoint; the listener of a CONNECT_REQUEST"`
}, err error) {
	result.eventFields, err = args.next(ctx, call, &testbed.Failure{}, call.Role.Channel().GetEvent)
	result.EP = result.owner
	return result, err
}

// eventWait are the arguments of a wait for an event of the connection manager.
type eventWait struct {
	Type optional[rdmacore.EventType] `arg:"type" doc:"the expected event (default: any)"`
	within
}

// next waits for an event and reads it; late becomes the failure if none comes.
func (w *eventWait) next(
	ctx context.Context, call *Call, late *testbed.Failure, get func(context.Context) (*rdmacore.Event, error),
) (eventFields, error) {
	var event *rdmacore.Event
	late.What, late.Expected = "no event", expectedEvent(w.Type)
	err := w.await(ctx, call, func(ctx context.Context) (err error) {
		event, err = get(ctx)
		return err
	}, late)
	if err != nil {
		return eventFields{}, err
	}
	owner := call.Role.Owner(event)
	call.Role.Read(event)
	if owner != nil && event.UD != nil {
		owner.Reach(event.UD)
	}
	if w.Type.Given && event.Type != w.Type.Value {
		if event.Type == rdmacore.EventConnectRequest {
			call.Role.Adopt("the connection of an unexpected request", event.ID)
		}
		return eventFields{}, &testbed.Failure{
			What: "wrong event", Expected: late.Expected, Got: withStatus(event.Type, event.Status),
			Hint: explain.Event(event.Type.String(), event.Status),
		}
	}
	call.Outcome.NoDefaults = failureEvent(event.Type)
	if event.Type == rdmacore.EventConnectRequest {
		call.adopt("a connection", event.ID).Listener = owner
	}
	conn := &event.Conn
	fields := eventFields{
		Type: event.Type, Status: eventStatus(event.Status), PrivateData: event.PrivateData,
		PrivateDataLen:     len(event.PrivateData),
		ResponderResources: conn.ResponderResources, InitiatorDepth: conn.InitiatorDepth, FlowControl: conn.FlowControl,
		RetryCount: conn.RetryCount, RNRRetryCount: conn.RNRRetryCount, QPNum: conn.QPNum, SRQ: conn.SRQ,
	}
	if event.UD != nil {
		fields.QKey = some(event.UD.QKey)
	}
	if owner != nil {
		fields.owner = owner.Name
	}
	return fields, nil
}

// failureEvent reports whether an event reports a failure.  Its status is then expected: a step that waits for
// REJECTED checks the status with `expect`.
func failureEvent(t rdmacore.EventType) bool {
	switch t {
	case rdmacore.EventAddrError, rdmacore.EventRouteError, rdmacore.EventConnectError,
		rdmacore.EventUnreachable, rdmacore.EventRejected, rdmacore.EventMulticastError:
		return true
	}
	return false
}

func withStatus(event rdmacore.EventType, status int) string {
	if status == 0 {
		return event.String()
	}
	return event.String() + " status " + rdmacore.StatusString(event, status, rdmacore.PortSpaceTCP)
}

// noEventHint guesses why an event did not come.
func noEventHint(call *Call, endpoint *testbed.Endpoint, wanted optional[rdmacore.EventType]) string {
	if wanted.Given && wanted.Value == rdmacore.EventConnectRequest {
		return fmt.Sprintf(
			"no peer connected to %s; is the client's address and port that of the listener, and did its connect "+
				"step run?",
			endpoint.ID().LocalAddr(),
		)
	}
	for _, role := range call.Testbed.Roles() {
		for _, other := range role.Endpoints() {
			if other.Listener != nil && !other.Answered {
				return fmt.Sprintf(
					"%s took a CONNECT_REQUEST (%s), but neither accept nor reject has followed", role.Name, other.Name,
				)
			}
		}
	}
	switch {
	case !wanted.Given:
	case wanted.Value == rdmacore.EventDisconnected && endpoint.Disconnected:
		return "a disconnect is answered by the peer's own disconnect or destroy_ep; until then the request is " +
			"repeated, for over a minute (rdma_disconnect(3))"
	case wanted.Value == rdmacore.EventDisconnected:
		return "neither side has called disconnect, or the peer is gone without a word (that takes over a minute to " +
			"notice)"
	case wanted.Value == rdmacore.EventEstablished:
		return "the peer has not answered the request; a full backlog, and a peer that never reads its request, " +
			"look like this"
	}
	return ""
}

// asyncEvent is struct ibv_async_event.
type asyncEvent struct {
	Type  rdmacore.AsyncEventType `result:"type" doc:"the event"`
	QPNum optional[uint32]        `result:"qp_num,varies" doc:"the queue pair that it concerns, if it concerns one"`
	Port  optional[int]           `result:"port" doc:"the port that it concerns, if it concerns one"`
}

func (e asyncEvent) summary() string { return e.Type.String() }

func waitAsync(ctx context.Context, call *Call, args *struct {
	Type optional[rdmacore.AsyncEventType] `arg:"type" doc:"the expected event (default: any)"`
	within
}) (result asyncEvent, err error) {
	var event rdmacore.AsyncEvent
	wanted := expectedEvent(args.Type)
	err = args.awaitLocked(ctx, call, func(ctx context.Context) error {
		var came bool
		if event, came, err = call.Role.WaitAsync(ctx); err == nil && !came {
			return context.DeadlineExceeded
		}
		return err
	}, &testbed.Failure{
		What: "no asynchronous event", Expected: wanted,
		Hint: "not every device raises every event; rdma_rxe has no QP_ACCESS_ERR and QP_REQ_ERR",
	})
	if err != nil {
		return result, err
	}
	if args.Type.Given && event.Type != args.Type.Value {
		return result, &testbed.Failure{What: "wrong asynchronous event", Expected: wanted, Got: event.Type.String()}
	}
	result.Type, result.Port = event.Type, when(event.Port != 0, event.Port)
	if event.QP != nil {
		result.QPNum = some(event.QP.Num())
	}
	return result, nil
}

func getRequest(ctx context.Context, call *Call, args *struct {
	theEndpoint
	within
}) (result struct {
	PrivateData optional[[]byte] `result:"private_data" doc:"private data of the peer, padded with zeros"`
}, err error) {
	var child *rdmacore.ID
	err = args.await(ctx, call, func(ctx context.Context) (err error) {
		child, err = args.EP.ID().GetRequest(ctx)
		return err
	}, &testbed.Failure{
		What: "no connection request", Expected: "a request",
		Hint: noEventHint(call, args.EP, some(rdmacore.EventConnectRequest)),
	})
	if err != nil {
		return result, err
	}
	call.adopt("a connection", child).Listener = args.EP
	if event := child.Event(); event != nil {
		result.PrivateData = some(event.PrivateData)
	}
	return result, nil
}
