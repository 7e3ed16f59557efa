package explain

// messages are what goes between two roles and can be lost: the words of a fault's drop (IBTA volume 1, 12.6 and 12.11),
// and what packets of queue pairs are answered with.
func messages() []Entry {
	return []Entry{
		{"all", "everything between the two roles", nil},
		{"data", "the packets of queue pairs, both requests and their answers; the connection manager's messages pass", nil},
		{"cm", "all messages of the connection manager; the packets of queue pairs pass", nil},
		{"REQ", "the client asks for a connection: rdma_connect(3) sends it with its private data, the server gets CONNECT_REQUEST", nil},
		{"MRA", "the peer has the message and wants more time to answer: it is sent without a program's doing when a request or an acceptance arrives", nil},
		{"REJ", "a connection is refused: by rdma_reject(3) with its private data, by the system where nobody listens, or by who gave up waiting; the peer gets REJECTED", nil},
		{"REP", "the server accepts: rdma_accept(3) sends it with its private data, the client gets ESTABLISHED", nil},
		{"RTU", "ready to use: the client has the acceptance, and the server gets ESTABLISHED; it is sent without a program's doing", nil},
		{"DREQ", "one side ends the connection: rdma_disconnect(3) sends it, the peer gets DISCONNECTED", nil},
		{"DREP", "the answer to a DREQ, which the peer's own disconnect sends: only with it who asked gets DISCONNECTED", nil},
		{"SIDR_REQ", "of datagrams (port space UDP): the client asks which queue pair serves a port; rdma_connect(3) sends it", nil},
		{"SIDR_REP", "the answer to a SIDR_REQ, of rdma_accept(3) or rdma_reject(3)", nil},
		{"ARP", "the question for the peer's hardware address, rdma_resolve_addr(3); lost, it ends in ADDR_ERROR", nil},
		{"PATH_RECORD", "the question for the route, rdma_resolve_route(3); lost, it ends in ROUTE_ERROR", nil},
		{"ACK", "acknowledgement of the packets of a queue pair: nobody sees it but the sender, whose request completes; drop has no word for it alone, \"drop: data, directed: true\" from the receiver to the sender loses it", nil},
		{"NAK", "refusal of a packet: out of sequence (it is sent again), receiver not ready (RNR, sent again after a time), or an error that ends the connection, such as REM_ACCESS_ERR; \"drop: data\" loses it", nil},
	}
}

// effects are what a fault does to what it concerns, the words of its action.
func effects() []Entry {
	return []Entry{
		{"lose", "what the fault concerns never arrives; its sender repeats it, or gives up", nil},
		{"delay", "a message arrives later, by the fault's delay", nil},
		{"duplicate", "a message arrives, and again after the fault's delay", nil},
		{"reorder", "a message is held until another has gone the same way, or the fault's delay has passed", nil},
	}
}
