package verb

import (
	"context"

	"rdmarun/host/scenario/lab"
	"rdmarun/rdmacore"
)

func waitAsyncVerb() Verb {
	return Verb{
		Name: "wait_async", Manual: "ibv_get_async_event(3)", Waits: true, Yields: Value, Run: waitAsync,
		Doc: "Wait for the next asynchronous event of the role's queue pairs and device.",
		Arguments: []Argument{
			{Name: "type", Type: Word, Words: asyncNames(), Doc: "what must come; without it anything may"},
			within(),
		},
		Results: []Result{
			{Name: "type", Type: Word, Words: asyncNames(), Doc: "the event"},
			{Name: "qp_num", Type: Integer, Varies: true, Doc: "the queue pair that it concerns, if it concerns one"},
			{Name: "port", Type: Integer, Doc: "the port that it concerns, if it concerns one"},
		},
	}
}

func waitAsync(ctx context.Context, call *Call) (Outcome, error) {
	waiting, cancel := call.Lab.Clock().WithTimeout(ctx, call.Duration("within"))
	defer cancel()
	event, came, err := call.Role.WaitAsync(waiting)
	wanted := call.Text("type")
	switch {
	case err != nil:
		return Outcome{}, err
	case !came && ctx.Err() != nil:
		return Outcome{}, ctx.Err()
	case !came:
		return Outcome{}, &lab.Failure{
			What:     "no asynchronous event",
			Expected: orElse(wanted, "an event"),
			Got:      call.nothingCame(),
			Hint:     "not every device raises every event; rdma_rxe has no QP_ACCESS_ERR and QP_REQ_ERR",
			Absent:   true,
		}
	case wanted != "" && event.Type.String() != wanted:
		return Outcome{}, &lab.Failure{What: "wrong asynchronous event", Expected: wanted, Got: event.Type.String()}
	}
	return Outcome{Fields: asyncFields(event), Summary: func() string { return event.Type.String() }}, nil
}

func asyncFields(event rdmacore.AsyncEvent) []any {
	fields := []any{event.Type.String(), nil, nil}
	if event.QP != nil {
		fields[1] = int(event.QP.Num())
	}
	if event.Port != 0 {
		fields[2] = event.Port
	}
	return fields
}
