package verb

import (
	"context"

	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

// acknowledgeVerbs decide when events are acknowledged, and read them whoever's they are.
func acknowledgeVerbs() []Verb {
	return []Verb{
		{
			Name: "hold_events", Manual: "rdma_ack_cm_event(3)", Scalar: "hold",
			Doc:       "Leave events unacknowledged that are read from now on, until ack_event; an id with such an event cannot be destroyed.",
			Arguments: []Argument{{Name: "hold", Type: Boolean, Required: true, Doc: "false: acknowledge at once again"}},
			Run: func(_ context.Context, call *Call) (Outcome, error) {
				return Outcome{}, call.Role.HoldEvents(call.Boolean("hold"))
			},
		},
		onID("ack_event", "rdma_ack_cm_event(3)", "Acknowledge the oldest event of an endpoint that is not acknowledged.", nil,
			func(call *Call, endpoint *lab.Endpoint) error { return call.Role.AckEvent(endpoint) }),
		{
			Name: "get_event", Manual: "rdma_get_cm_event(3)", Waits: true, Yields: NewEndpoint, Run: getEvent,
			Doc:       "Wait for the next event of the role, of whichever endpoint; `as` names the one that a CONNECT_REQUEST brings.",
			Arguments: []Argument{{Name: "type", Type: Word, Words: eventNames(), Doc: "what must come; without it anything may"}, within()},
			Results:   append(eventResults(), Result{Name: "ep", Type: Text, Doc: "the endpoint; the listener of a CONNECT_REQUEST"}),
		},
	}
}

func getEvent(ctx context.Context, call *Call) (Outcome, error) {
	wanted := call.Text("type")
	var event *rdmacore.Event
	err := bounded(ctx, call, func(ctx context.Context) (err error) {
		event, err = call.Role.Channel().GetEvent(ctx)
		return err
	}, &lab.Failure{What: "no event", Expected: orElse(wanted, "an event")})
	if err != nil {
		return Outcome{}, err
	}
	name := ""
	if owner := call.Role.Owner(event); owner != nil {
		name = owner.Name
	}
	outcome, err := tookEvent(call, event, wanted)
	if err == nil {
		outcome.Fields = append(outcome.Fields, name)
	}
	return outcome, err
}
