package main

// attribute is a row: an attribute of a queue pair, in each of its forms.
type attribute struct {
	name string // of the field in Go
	kind string // of the field in rdmacore
	c    string // member of struct ibv_qp_attr
	doc  string // for all readers

	// In the ABI of guests: the member, "" is that of C; the field in Go, "" is name; and the enum.
	guest, guestName, enum string

	// In scenarios: the key, "" is none; and whether its value varies from run to run.
	key    string
	varies bool
	// A key of modify_qp has the bit of the mask without IBV_QP_, "" is none; a type, "" is kind; and a greatest value.
	mask, argument, max string
	noResult            bool // a key of modify_qp only
}

// reserved is a member of the guest's struct that is 0.
const reserved = "reserved"

// attributes are in the order of the guest's struct, which nothing may change: members are only added at its end.
var attributes = []attribute{
	{name: "State", kind: "QPState", c: "qp_state", enum: "qp_state", key: "state", mask: "STATE",
		doc: "RESET, INIT, RTR, RTS, SQD, SQE or ERR"},
	{name: "QPNum", kind: "", guest: "qp_num", doc: "the QP's number"}, // of the queue pair, not of its attributes
	{name: "DestQPNum", kind: "uint32", c: "dest_qp_num", key: "dest_qp_num", varies: true, mask: "DEST_QPN",
		max: "0xffffff", doc: "the peer's number"},
	{name: "PathMTU", kind: "int", c: "path_mtu", key: "path_mtu", varies: true, mask: "PATH_MTU", max: "0x10000",
		doc: "bytes of payload in a packet"},
	{name: "AccessFlags", kind: "Access", c: "qp_access_flags", guest: "access_flags", enum: "access", key: "access",
		mask: "ACCESS_FLAGS", argument: "peerRights", doc: "what the peer may do, such as REMOTE_WRITE"},
	{name: "MaxRdAtomic", kind: "uint8", c: "max_rd_atomic", key: "max_rd_atomic", mask: "MAX_QP_RD_ATOMIC",
		doc: "READs and atomics outstanding as initiator"},
	{name: "MaxDestRdAtomic", kind: "uint8", c: "max_dest_rd_atomic", key: "max_dest_rd_atomic",
		mask: "MAX_DEST_RD_ATOMIC", doc: "READs and atomics outstanding as target"},
	{name: "RetryCnt", kind: "uint8", c: "retry_cnt", guestName: "RetryCount", key: "retry_cnt", mask: "RETRY_CNT",
		max: "7", doc: "repeats of an unanswered packet"},
	{name: "RNRRetry", kind: "uint8", c: "rnr_retry", guestName: "RNRRetryCount", key: "rnr_retry", mask: "RNR_RETRY",
		max: "7", doc: "repeats of a send that finds no receive; 7 means forever"},
	{name: "MaxSendWR", kind: "uint32", c: "cap.max_send_wr", guest: "max_send_wr", doc: "granted"},
	{name: "MaxRecvWR", kind: "uint32", c: "cap.max_recv_wr", guest: "max_recv_wr", doc: "granted"},
	{name: "MaxSendSGE", kind: "uint32", c: "cap.max_send_sge", guest: "max_send_sge", doc: "granted"},
	{name: "MaxRecvSGE", kind: "uint32", c: "cap.max_recv_sge", guest: "max_recv_sge", doc: "granted"},
	{name: "MaxInlineData", kind: "uint32", c: "cap.max_inline_data", guest: "max_inline_data",
		doc: "granted, in bytes"},
	{name: "Reserved", guest: reserved, doc: "0"},
	// Since 1.3.
	{name: "CurState", kind: "QPState", c: "cur_qp_state", enum: "qp_state", key: "cur_state", mask: "CUR_STATE",
		noResult: true, doc: "the assumed current state"},
	{name: "QKey", kind: "uint32", c: "qkey", key: "qkey", varies: true, mask: "QKEY", doc: "key of datagrams"},
	{name: "RQPSN", kind: "uint32", c: "rq_psn", key: "rq_psn", varies: true, mask: "RQ_PSN", max: "0xffffff",
		doc: "packet sequence number it expects next"},
	{name: "SQPSN", kind: "uint32", c: "sq_psn", key: "sq_psn", varies: true, mask: "SQ_PSN", max: "0xffffff",
		doc: "packet sequence number it sends next"},
	{name: "MinRNRTimer", kind: "uint8", c: "min_rnr_timer", key: "min_rnr_timer", mask: "MIN_RNR_TIMER", max: "31",
		doc: "code of the time it asks a sender to wait; 0 is 655.36ms, 1 is 10us"},
	{name: "Timeout", kind: "uint8", c: "timeout", key: "timeout", mask: "TIMEOUT", max: "31",
		doc: "code n of the local ACK timeout, 4.096 us * 2^n; 0 means forever"},
	{name: "PkeyIndex", kind: "uint16", c: "pkey_index", key: "pkey_index", mask: "PKEY_INDEX",
		doc: "index of the partition key"},
	{name: "PortNum", kind: "uint8", c: "port_num", key: "port_num", varies: true, mask: "PORT",
		doc: "port of the device"},
	{name: "EnSQDAsyncNotify", kind: "bool", c: "en_sqd_async_notify", key: "en_sqd_async_notify",
		mask: "EN_SQD_ASYNC_NOTIFY", noResult: true, doc: "an event when the send queue is drained"},
	{name: "SQDraining", kind: "bool", c: "sq_draining", doc: "set in SQD, while the send queue is not drained"},
	{name: "PathMigState", kind: "MigState", c: "path_mig_state", doc: "enum ibv_mig_state"},
	{name: "RateLimit", kind: "uint32", c: "rate_limit", doc: "in kbit/s"},
	{name: "AltPkeyIndex", kind: "uint16", c: "alt_pkey_index", doc: "pkey_index of the alternate path"},
	{name: "AltPortNum", kind: "uint8", c: "alt_port_num", doc: "port_num of the alternate path"},
	{name: "AltTimeout", kind: "uint8", c: "alt_timeout", doc: "timeout of the alternate path"},
	{name: "Reserved2", guest: reserved + "2", doc: "0"},
	{name: "AH", kind: "AHAttr", c: "ah_attr", doc: "the peer's address"},
	{name: "AltAH", kind: "AHAttr", c: "alt_ah_attr", doc: "the peer's address on the alternate path"},
}
