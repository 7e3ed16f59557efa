package verb

import (
	"context"

	"rdmarun/rdmacore"
)

func modifyVerb() Verb {
	return Verb{
		Name: "modify_qp", Manual: "ibv_modify_qp(3)", Run: modifyQP,
		Doc: "Change attributes of a queue pair: those that are given.",
		Arguments: []Argument{
			{Name: "ep", Type: Endpoint, Doc: "the endpoint; without it the role's only one"},
			{Name: "state", Type: Word, Words: qpStateNames(), Doc: "the new state"},
			{Name: "cur_state", Type: Word, Words: qpStateNames(), Doc: "the state that is taken for the present one"},
			{Name: "min_rnr_timer", Type: Integer, Max: 31, Doc: "code of the time it asks a sender to wait; 0 is 655.36 ms, 1 is 10 us"},
			{Name: "timeout", Type: Integer, Max: 31, Doc: "code n of the local ACK timeout, 4.096 us * 2^n; 0 is for ever"},
			{Name: "retry_cnt", Type: Integer, Max: 7, Doc: "repeats of an unanswered packet"},
			{Name: "rnr_retry", Type: Integer, Max: 7, Doc: "repeats of a send that finds no receive; 7 is for ever"},
			{Name: "max_rd_atomic", Type: Integer, Max: 255, Doc: "READs and atomics outstanding as initiator"},
			{Name: "max_dest_rd_atomic", Type: Integer, Max: 255, Doc: "READs and atomics outstanding as target"},
			{Name: "access", Type: Rights, Doc: "what the peer may do"},
		},
	}
}

func modifyQP(_ context.Context, call *Call) (Outcome, error) {
	qp, _, err := queuePair(call)
	if err != nil {
		return Outcome{}, err
	}
	var attr rdmacore.QPAttr
	var mask rdmacore.QPAttrMask
	for _, each := range []struct {
		name  string
		flag  rdmacore.QPAttrMask
		field *rdmacore.QPState
	}{{"state", rdmacore.QPAttrState, &attr.State}, {"cur_state", rdmacore.QPAttrCurState, &attr.CurState}} {
		if !call.Has(each.name) {
			continue
		}
		if *each.field, err = rdmacore.ParseQPState(call.Text(each.name)); err != nil {
			return Outcome{}, err
		}
		mask |= each.flag
	}
	for _, each := range []struct {
		name  string
		flag  rdmacore.QPAttrMask
		field *uint8
	}{
		{"min_rnr_timer", rdmacore.QPAttrMinRNRTimer, &attr.MinRNRTimer},
		{"timeout", rdmacore.QPAttrTimeout, &attr.Timeout},
		{"retry_cnt", rdmacore.QPAttrRetryCnt, &attr.RetryCnt},
		{"rnr_retry", rdmacore.QPAttrRNRRetry, &attr.RNRRetry},
		{"max_rd_atomic", rdmacore.QPAttrMaxQPRdAtomic, &attr.MaxRdAtomic},
		{"max_dest_rd_atomic", rdmacore.QPAttrMaxDestRdAtomic, &attr.MaxDestRdAtomic},
	} {
		if call.Has(each.name) {
			*each.field = uint8(call.Integer(each.name))
			mask |= each.flag
		}
	}
	if access, given := call.argument("access").(rdmacore.Access); given {
		attr.AccessFlags = access
		mask |= rdmacore.QPAttrAccessFlags
	}
	return Outcome{}, qp.Modify(attr, mask)
}
