package verb

import (
	"context"
	"errors"

	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

// synchronousVerbs wait for what calls of ids without an event channel have started.
func synchronousVerbs() []Verb {
	return []Verb{
		{
			Name: "complete", Manual: "rdma_create_id(3)", Waits: true, Run: complete,
			Doc:       "Wait for the end of the last call of a synchronous id, whose errno it has; at once when none is under way.",
			Arguments: []Argument{theEndpoint(), within()},
		},
		{
			Name: "get_request", Manual: "rdma_get_request(3)", Waits: true, Yields: NewEndpoint, Run: getRequest,
			Doc:       "Wait for the next connection request of a synchronous listener; `as` names the new endpoint.",
			Arguments: []Argument{theEndpoint(), within()},
			Results: []Result{
				{Name: "private_data", Type: Data, Doc: "what the peer sent, padded with zeros"},
			},
		},
	}
}

// bounded runs a wait outside of the lab, within the time of the step.  late is told when that is over.
func bounded(ctx context.Context, call *Call, wait func(context.Context) error, late *lab.Failure) error {
	waiting, cancel := call.Lab.Clock().WithTimeout(ctx, call.Duration("within"))
	defer cancel()
	var err error
	call.Lab.Outside(func() { err = wait(waiting) })
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		late.Got, late.Absent = call.nothingCame(), true
		return late
	}
	return err
}

func complete(ctx context.Context, call *Call) (Outcome, error) {
	endpoint, err := call.Endpoint("ep")
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{}, bounded(ctx, call, endpoint.ID().Complete, &lab.Failure{What: "the call has no end", Expected: "its end"})
}

func getRequest(ctx context.Context, call *Call) (Outcome, error) {
	endpoint, err := call.Endpoint("ep")
	if err != nil {
		return Outcome{}, err
	}
	var child *rdmacore.ID
	err = bounded(ctx, call, func(ctx context.Context) (err error) {
		child, err = endpoint.ID().GetRequest(ctx)
		return err
	}, &lab.Failure{What: "no connection request", Expected: "a request", Hint: silence(call, endpoint, "CONNECT_REQUEST")})
	if err != nil {
		return Outcome{}, err
	}
	made := call.Role.Adopt("a connection", child)
	made.Listener = endpoint
	outcome := Outcome{Endpoint: made, Fields: []any{nil}}
	if event := child.Event(); event != nil {
		outcome.Fields[0] = event.PrivateData
	}
	return outcome, nil
}
