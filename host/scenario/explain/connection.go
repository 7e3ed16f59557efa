package explain

// events are the CM events, rdma_get_cm_event(3).
func events() []Entry {
	return []Entry{
		{"ADDR_ERROR", "the peer's address could not be resolved", []string{"no such host on the network", "the address is not on a network with an RDMA device", "a fault of the scenario (drop: ARP)"}},
		{"ROUTE_ERROR", "the route to the peer could not be resolved", []string{"no path record", "the network interface is down", "a fault of the scenario (drop: PATH_RECORD)"}},
		{"CONNECT_ERROR", "the connection could not be set up at this side", []string{"the queue pair refused a transition"}},
		{"UNREACHABLE", "the peer did not answer the connection manager", []string{"host down", "a firewall drops UDP port 4791", "the server's backlog is full", "the server has read the request and never answers it", "a fault of the scenario (drop: REQ, or REP)"}},
		{"REJECTED", "the peer refused the connection", nil},
		{"ESTABLISHED", "the connection stands", nil},
		{"DISCONNECTED", "the connection has ended", []string{"the peer called disconnect", "the peer destroyed its endpoint", "the peer's process ended"}},
		{"DEVICE_REMOVAL", "the device is gone, and the endpoint can only be destroyed", []string{"its driver was unbound or reset", "a card was pulled", "a fault of the scenario (device: removal)"}},
		{"CONNECT_REQUEST", "a client asks for a connection", nil},
		{"CONNECT_RESPONSE", "the server accepted, and the endpoint has no queue pair to establish by itself", nil},
		{"ADDR_CHANGE", "the hardware address behind the endpoint has changed", []string{"a bond's failover", "a fault of the scenario (device: address_change)"}},
		{"TIMEWAIT_EXIT", "the queue pair's number may be used again", nil},
	}
}

// rejects are the reasons of a REJ message, IBTA volume 1, 12.6.7.2.
func rejects() []Entry {
	return []Entry{
		{"NO_QP", "the peer has no queue pair for this connection", nil},
		{"NO_RESOURCES", "the peer has no room for another connection", nil},
		{"TIMEOUT", "the peer gave up waiting for the next message", []string{"the client destroyed its endpoint before the server accepted"}},
		{"UNSUPPORTED", "the peer does not support the request", nil},
		{"INVALID_COMM_ID", "the peer does not know the connection", nil},
		{"INVALID_SERVICE_ID", "nobody listens on that port", []string{"the server is not running yet", "another port or port space", "the server listens on another address of that host"}},
		{"INVALID_TRANSPORT_TYPE", "the peer wants another type of queue pair", nil},
		{"STALE_CONN", "the peer still has a connection with this queue pair number", []string{"an earlier process ended without a word; try again"}},
		{"INVALID_GID", "the peer does not know the destination GID", []string{"an address that moved to another device"}},
		{"INVALID_MTU", "the peer cannot use this path MTU", nil},
		{"INSUFFICIENT_RESP_RESOURCES", "the peer cannot serve that many READs and atomics", []string{"a lower initiator_depth"}},
		{"CONSUMER_DEFINED", "the program at the peer refused, or it is gone", []string{"reject", "the listener or the request was destroyed unanswered", "the peer's process ended", "its accept failed"}},
		{"INVALID_RNR_RETRY", "the peer cannot use this rnr_retry_count", nil},
		{"DUPLICATE_LOCAL_COMM_ID", "the peer has this request already", nil},
		{"VENDOR_OPTION_NOT_SUPPORTED", "the peer does not support an enhanced connection option", nil},
	}
}
