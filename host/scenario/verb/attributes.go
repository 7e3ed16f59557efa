package verb

import (
	"rdmarun/rdmacore"
)

// attributeResults are the fields of struct ibv_qp_attr, as far as scenarios look at them.
func attributeResults() []Result {
	return []Result{
		{Name: "state", Type: Word, Words: qpStateNames(), Doc: "RESET, INIT, RTR, RTS, SQD, SQE or ERR"},
		{Name: "dest_qp_num", Type: Integer, Varies: true, Doc: "the peer's number"},
		{Name: "path_mtu", Type: Integer, Varies: true, Doc: "bytes of payload in a packet"},
		{Name: "rq_psn", Type: Integer, Varies: true, Doc: "packet sequence number it expects next"},
		{Name: "sq_psn", Type: Integer, Varies: true, Doc: "packet sequence number it sends next"},
		{Name: "max_rd_atomic", Type: Integer, Doc: "READs and atomics outstanding as initiator"},
		{Name: "max_dest_rd_atomic", Type: Integer, Doc: "READs and atomics outstanding as target"},
		{Name: "min_rnr_timer", Type: Integer, Doc: "code of the time it asks a sender to wait; 0 is 655.36ms"},
		{Name: "timeout", Type: Integer, Doc: "code n of the local ACK timeout, 4.096 us * 2^n"},
		{Name: "retry_cnt", Type: Integer, Doc: "repeats of an unanswered packet"},
		{Name: "rnr_retry", Type: Integer, Doc: "repeats of a send that finds no receive"},
		{Name: "qkey", Type: Integer, Varies: true, Doc: "key of datagrams"},
		{Name: "pkey_index", Type: Integer, Doc: "index of the partition key"},
		{Name: "port_num", Type: Integer, Varies: true, Doc: "port of the device"},
		{Name: "access", Type: Text, Doc: "what the peer may do: REMOTE_WRITE|REMOTE_READ.."},
	}
}

// attributeFields are the values of attributeResults.
func attributeFields(attr *rdmacore.QPAttr) []any {
	return []any{
		attr.State.String(), int(attr.DestQPNum), attr.PathMTU, int(attr.RQPSN), int(attr.SQPSN),
		int(attr.MaxRdAtomic), int(attr.MaxDestRdAtomic), int(attr.MinRNRTimer), int(attr.Timeout),
		int(attr.RetryCnt), int(attr.RNRRetry), int(attr.QKey), int(attr.PkeyIndex), int(attr.PortNum), attr.AccessFlags.String(),
	}
}
