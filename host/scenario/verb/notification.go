package verb

import (
	"context"

	"rdmarun/host/scenario/lab"
)

// notificationVerbs ask for completion events and wait for them.
func notificationVerbs() []Verb {
	queue := Argument{Name: "cq", Type: Word, Words: []string{"send", "recv"}, Required: true, Doc: "which completion queue of the endpoint"}
	endpoint := Argument{Name: "ep", Type: Endpoint, Doc: "the endpoint; without it the role's only one"}
	return []Verb{
		{
			Name: "req_notify", Manual: "ibv_req_notify_cq(3)", Doc: "Ask for an event at the next completion; those that are there already raise none.",
			Arguments: []Argument{queue, endpoint, {Name: "solicited", Type: Boolean, Doc: "at the next solicited one or failure only"}},
			Run: func(_ context.Context, call *Call) (Outcome, error) {
				cq, _, err := queueOf(call)
				if err != nil {
					return Outcome{}, err
				}
				return Outcome{}, cq.RequestNotify(call.Boolean("solicited"))
			},
		},
		{
			Name: "get_cq_event", Manual: "ibv_get_cq_event(3)", Waits: true, Run: getCQEvent,
			Doc:       "Wait for the event that req_notify asked for.",
			Arguments: []Argument{queue, endpoint, within()},
		},
	}
}

func getCQEvent(ctx context.Context, call *Call) (Outcome, error) {
	cq, endpoint, err := queueOf(call)
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{}, bounded(ctx, call, cq.WaitEvent, &lab.Failure{
		What: "no completion event", Expected: "an event of the " + call.Text("cq") + " queue of " + endpoint.Name,
		Hint: "req_notify comes first, and only a completion after it raises one",
	})
}
