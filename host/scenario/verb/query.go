package verb

import (
	"context"
)

// queryVerbs ask objects for their state.
func queryVerbs() []Verb {
	return []Verb{modifyVerb(), {
		Name: "query_qp", Manual: "ibv_query_qp(3)", Yields: Value, Run: queryQP,
		Doc:       "Ask a queue pair for its attributes.",
		Arguments: []Argument{{Name: "ep", Type: Endpoint, Doc: "the endpoint; without it the role's only one"}},
		Results: append(attributeResults(), []Result{
			{Name: "qp_num", Type: Integer, Varies: true, Doc: "its number"},
			{Name: "max_send_wr", Type: Integer, Varies: true, Doc: "send requests at once"},
			{Name: "max_recv_wr", Type: Integer, Varies: true, Doc: "receive requests at once"},
			{Name: "max_inline_data", Type: Integer, Varies: true, Doc: "bytes that a request can carry itself"},
		}...),
	}}
}

func queryQP(_ context.Context, call *Call) (Outcome, error) {
	qp, _, err := queuePair(call)
	if err != nil {
		return Outcome{}, err
	}
	attr, err := qp.Query()
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{
		Fields: append(attributeFields(&attr),
			int(qp.Num()), int(attr.MaxSendWR), int(attr.MaxRecvWR), int(attr.MaxInlineData)),
		Summary: func() string { return attr.State.String() },
	}, nil
}
