package verb

import (
	"context"

	"rdmarun/host/scenario/lab"
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
			{Name: "min_rnr_timer", Type: Integer, Max: 31, Doc: "code of the time it asks a sender to wait; 0 is 655.36ms, 1 is 10us"},
			{Name: "timeout", Type: Integer, Max: 31, Doc: "code n of the local ACK timeout, 4.096 us * 2^n; 0 is for ever"},
			{Name: "retry_cnt", Type: Integer, Max: 7, Doc: "repeats of an unanswered packet"},
			{Name: "rnr_retry", Type: Integer, Max: 7, Doc: "repeats of a send that finds no receive; 7 is for ever"},
			{Name: "max_rd_atomic", Type: Integer, Max: 255, Doc: "READs and atomics outstanding as initiator"},
			{Name: "max_dest_rd_atomic", Type: Integer, Max: 255, Doc: "READs and atomics outstanding as target"},
			{Name: "path_mtu", Type: Integer, Min: 0, Max: 1 << 16, Doc: "bytes of payload in a packet"},
			{Name: "dest_qp_num", Type: Integer, Max: 1<<24 - 1, Doc: "the peer's number"},
			{Name: "rq_psn", Type: Integer, Max: 1<<24 - 1, Doc: "packet sequence number it expects next"},
			{Name: "sq_psn", Type: Integer, Max: 1<<24 - 1, Doc: "packet sequence number it sends next"},
			{Name: "qkey", Type: Integer, Max: 1<<32 - 1, Doc: "key of datagrams"},
			{Name: "pkey_index", Type: Integer, Max: 65535, Doc: "index of the partition key"},
			{Name: "port_num", Type: Integer, Max: 255, Doc: "port of the device"},
			{Name: "en_sqd_async_notify", Type: Boolean, Doc: "an event when the send queue is drained"},
			{Name: "from_cm", Type: Boolean, Doc: "true: begin with what init_qp_attr says for the state"},
			{Name: "gid", Type: Text, Doc: "the peer's address: all 16 bytes as an IPv6 address, or the IPv4 address that it stands for"},
			{Name: "access", Type: PeerRights, Doc: "what the peer may do"},
		},
	}
}

// attribute is a number of struct ibv_qp_attr that an argument of its name sets.
type attribute[T uint8 | uint32] struct {
	name  string
	flag  rdmacore.QPAttrMask
	field *T
}

// setAttributes sets those that the call gives, and returns their flags.
func setAttributes[T uint8 | uint32](call *Call, attributes []attribute[T]) (mask rdmacore.QPAttrMask) {
	for _, each := range attributes {
		if call.Has(each.name) {
			*each.field = T(call.Integer(each.name))
			mask |= each.flag
		}
	}
	return mask
}

func modifyQP(_ context.Context, call *Call) (Outcome, error) {
	qp, endpoint, err := queuePair(call)
	if err != nil {
		return Outcome{}, err
	}
	var attr rdmacore.QPAttr
	var mask rdmacore.QPAttrMask
	if call.Boolean("from_cm") {
		if attr, mask, err = initialAttributes(call, endpoint); err != nil {
			return Outcome{}, err
		}
	}
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
	mask |= setAttributes(call, []attribute[uint8]{
		{"min_rnr_timer", rdmacore.QPAttrMinRNRTimer, &attr.MinRNRTimer},
		{"timeout", rdmacore.QPAttrTimeout, &attr.Timeout},
		{"retry_cnt", rdmacore.QPAttrRetryCnt, &attr.RetryCnt},
		{"rnr_retry", rdmacore.QPAttrRNRRetry, &attr.RNRRetry},
		{"max_rd_atomic", rdmacore.QPAttrMaxQPRdAtomic, &attr.MaxRdAtomic},
		{"max_dest_rd_atomic", rdmacore.QPAttrMaxDestRdAtomic, &attr.MaxDestRdAtomic},
	})
	mask |= setAttributes(call, []attribute[uint32]{
		{"dest_qp_num", rdmacore.QPAttrDestQPN, &attr.DestQPNum},
		{"rq_psn", rdmacore.QPAttrRQPSN, &attr.RQPSN},
		{"sq_psn", rdmacore.QPAttrSQPSN, &attr.SQPSN},
		{"qkey", rdmacore.QPAttrQKey, &attr.QKey},
	})
	if call.Has("path_mtu") {
		attr.PathMTU, mask = call.Integer("path_mtu"), mask|rdmacore.QPAttrPathMTU
	}
	if call.Has("pkey_index") {
		attr.PkeyIndex, mask = uint16(call.Integer("pkey_index")), mask|rdmacore.QPAttrPkeyIndex
	}
	if call.Has("port_num") {
		attr.PortNum, mask = uint8(call.Integer("port_num")), mask|rdmacore.QPAttrPort
	}
	if call.Has("en_sqd_async_notify") {
		attr.EnSQDAsyncNotify, mask = call.Boolean("en_sqd_async_notify"), mask|rdmacore.QPAttrEnSQDAsyncNotify
	}
	if access, given := call.argument("access").(rdmacore.Access); given {
		attr.AccessFlags = access
		mask |= rdmacore.QPAttrAccessFlags
	}
	if call.Has("gid") {
		if mask&rdmacore.QPAttrAV == 0 {
			attr.AH = rdmacore.AHAttr{IsGlobal: true, PortNum: 1, HopLimit: usualHops}
			if attr.AH.SGIDIndex, err = ownGID(call, int(attr.AH.PortNum)); err != nil {
				return Outcome{}, err
			}
		}
		if attr.AH.DGID, err = gidOf(call, "gid"); err != nil {
			return Outcome{}, err
		}
		mask |= rdmacore.QPAttrAV
	}
	return Outcome{}, qp.Modify(attr, mask)
}

// initialAttributes are those that the connection manager would set for the step's state.
func initialAttributes(call *Call, endpoint *lab.Endpoint) (rdmacore.QPAttr, rdmacore.QPAttrMask, error) {
	state, err := rdmacore.ParseQPState(orElse(call.Text("state"), rdmacore.QPStateInit.String()))
	if err != nil {
		return rdmacore.QPAttr{}, 0, err
	}
	return endpoint.ID().InitQPAttr(state)
}
