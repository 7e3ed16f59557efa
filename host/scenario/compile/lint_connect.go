package compile

import (
	"fmt"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/verb"
)

// Port spaces whose messages carry what follows; every other one is for connections by IP addresses.
const (
	spaceTCP   = "TCP"
	spaceUDP   = "UDP"
	spaceIPOIB = "IPOIB"
)

// privateDataLimits are the bytes of private data that a message carries on InfiniBand and RoCE, for connections
// and for datagrams: rdma_connect(3), rdma_accept(3), rdma_reject(3).
var privateDataLimits = map[string]struct{ connection, datagram int }{
	"connect": {56, 180}, "accept": {196, 136}, "reject": {148, 136},
}

// portSpaceOf is the port space of the endpoint that a call makes, "" when only the run will tell.
func (f *facts) portSpaceOf(call *Call, role string) string {
	switch call.Verb.Name {
	case "create_id":
		return constantText(call, "port_space")
	case "wait_event", "get_request":
		return f.portSpaceNamed(call, role)
	case "create_ep", "bind":
		return spaceTCP
	}
	return "" // get_event: of whichever endpoint
}

// portSpaceNamed is the port space of the endpoint that a call is about.
func (f *facts) portSpaceNamed(call *Call, role string) string {
	return f.portSpaces[endpointName{role, constantText(call, "ep")}]
}

func constantText(call *Call, name string) string {
	i := call.Verb.Argument(name)
	if i < 0 || i >= len(call.Arguments) || call.Arguments[i] == nil {
		return ""
	}
	value, _ := call.Arguments[i].Constant()
	text, _ := value.(string)
	return text
}

func (c *compiler) lintPrivateData(call *Call, at place) {
	value, span, ok := given(call, "private_data")
	data, isData := value.(verb.DataValue)
	limits := privateDataLimits[call.Verb.Name]
	limit, space := limits.connection, c.facts.portSpaceNamed(call, at.role)
	switch space {
	case spaceUDP, spaceIPOIB:
		limit = limits.datagram
	case "": // nobody knows before the run
		limit = max(limits.connection, limits.datagram)
	}
	if !ok || !isData || len(data.Bytes) <= limit || call.expectsErrno() || c.wants("transport.iwarp") {
		return
	}
	where := "with RDMA_PS_" + space
	if space == "" {
		where = "at most"
	}
	c.errors.Report(diag.PrivateDataLong, span, "private data is %d bytes; %s carries %d %s on InfiniBand and RoCE", len(data.Bytes), call.Verb.Name, limit, where).
		WithHint("a step that tries it says so: expect: {errno: EINVAL}")
}

// mostRetries is what three bits hold (rdma_connect(3), INFINIBAND SPECIFIC).
const mostRetries = 7

// lintRetryCounts finds counts of which the kernel makes 7.
func (c *compiler) lintRetryCounts(call *Call) {
	for name, attribute := range map[string]string{"retry_count": "retry_cnt", "rnr_retry_count": "rnr_retry"} {
		if value, span, ok := given(call, name); ok && value.(int) > mostRetries {
			c.facts.counts = append(c.facts.counts, retryCount{attribute, diag.Diagnostic{Code: diag.RetryCountLarge, Span: span,
				Message: fmt.Sprintf("%s is %d, and counts have three bits: the kernel makes 7 of it", name, value),
				Hint:    "rdma_connect(3), INFINIBAND SPECIFIC; 7 says the same"}})
		}
	}
}
