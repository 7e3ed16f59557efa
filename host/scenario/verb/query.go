package verb

import (
	"context"
)

// queryVerbs ask objects for their state.
func queryVerbs() []Verb {
	return []Verb{queryDeviceVerb(), modifyVerb(), {
		Name: "query_qp", Manual: "ibv_query_qp(3)", Yields: Value, Run: queryQP,
		Doc:       "Ask a queue pair for its attributes.",
		Arguments: []Argument{{Name: "ep", Type: Endpoint, Doc: "the endpoint; without it the role's only one"}},
		Results: []Result{
			{Name: "state", Type: Word, Words: qpStateNames(), Doc: "RESET, INIT, RTR, RTS, SQD, SQE or ERR"},
			{Name: "qp_num", Type: Integer, Varies: true, Doc: "its number"},
			{Name: "dest_qp_num", Type: Integer, Varies: true, Doc: "the peer's number"},
			{Name: "path_mtu", Type: Integer, Varies: true, Doc: "bytes of payload in a packet"},
			{Name: "rq_psn", Type: Integer, Varies: true, Doc: "packet sequence number it expects next"},
			{Name: "sq_psn", Type: Integer, Varies: true, Doc: "packet sequence number it sends next"},
			{Name: "max_rd_atomic", Type: Integer, Doc: "READs and atomics outstanding as initiator"},
			{Name: "max_dest_rd_atomic", Type: Integer, Doc: "READs and atomics outstanding as target"},
			{Name: "min_rnr_timer", Type: Integer, Doc: "code of the time it asks a sender to wait; 0 is 655.36 ms"},
			{Name: "timeout", Type: Integer, Doc: "code n of the local ACK timeout, 4.096 us * 2^n"},
			{Name: "retry_cnt", Type: Integer, Doc: "repeats of an unanswered packet"},
			{Name: "rnr_retry", Type: Integer, Doc: "repeats of a send that finds no receive"},
			{Name: "max_send_wr", Type: Integer, Varies: true, Doc: "send requests at once"},
			{Name: "max_recv_wr", Type: Integer, Varies: true, Doc: "receive requests at once"},
			{Name: "max_inline_data", Type: Integer, Varies: true, Doc: "bytes that a request can carry itself"},
		},
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
		Fields: []any{
			attr.State.String(), int(qp.Num()), int(attr.DestQPNum), attr.PathMTU, int(attr.RQPSN), int(attr.SQPSN),
			int(attr.MaxRdAtomic), int(attr.MaxDestRdAtomic), int(attr.MinRNRTimer), int(attr.Timeout),
			int(attr.RetryCnt), int(attr.RNRRetry), int(attr.MaxSendWR), int(attr.MaxRecvWR), int(attr.MaxInlineData),
		},
		Summary: func() string { return attr.State.String() },
	}, nil
}
