package compile

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// facts are what the checker remembers of the steps of a case, for what only the whole of them tells.
type facts struct {
	// needs are the capabilities of steps that run in any case.
	needs map[string]bool
	// conditional counts the `if`s around the current step.
	conditional int
	// zeroDepth are the roles that connect with an initiator_depth of 0, with the place of it.
	zeroDepth map[string]diag.Span
	// rnrRetries are the places of an rnr_retry_count of connect.
	rnrRetries []diag.Span
	reads      []readStep
	// tooShort are limits of time that an RNR timer of rdma_cm's would break; rnrSet tells that some step sets that
	// timer or how often a send is repeated, so that it need not be what rdma_cm makes it.
	tooShort []limitOfTime
	rnrSet   bool
	// counts are warnings of counts of retries; looked has the attributes of queue pairs that steps expect something of.
	counts []retryCount
	looked map[string]bool
	// sends tells that the accepting side posts sends; accepts are its roles.
	accepts, sends map[string]bool
	// sources are the steps that measure.
	sources []*source
	// portSpaces are those of endpoints, "" where only the run will tell.
	portSpaces map[endpointName]string
}

// endpointName is an endpoint of a role.
type endpointName struct{ role, name string }

type limitOfTime struct {
	span  diag.Span
	limit time.Duration
}

type readStep struct {
	role string
	span diag.Span
}

// retryCount is a count that becomes another one than it looks, in an attribute of the queue pair.
type retryCount struct {
	attribute string
	warning   diag.Diagnostic
}

func newFacts() *facts {
	return &facts{looked: make(map[string]bool), needs: make(map[string]bool), zeroDepth: make(map[string]diag.Span), accepts: make(map[string]bool), sends: make(map[string]bool), portSpaces: make(map[endpointName]string)}
}

func (f *facts) clone() *facts {
	return &facts{
		needs: maps.Clone(f.needs), zeroDepth: maps.Clone(f.zeroDepth), rnrRetries: slices.Clone(f.rnrRetries),
		counts: slices.Clone(f.counts), looked: maps.Clone(f.looked), sources: slices.Clone(f.sources),
		tooShort: slices.Clone(f.tooShort), rnrSet: f.rnrSet, reads: slices.Clone(f.reads), accepts: maps.Clone(f.accepts), sends: maps.Clone(f.sends), portSpaces: maps.Clone(f.portSpaces),
	}
}

func (f *facts) capabilities() []string { return slices.Sorted(maps.Keys(f.needs)) }

// note remembers a step, and checks what one step alone tells.
func (f *facts) note(x *expander, step *ast.Step, call *Call, at place) {
	if need := step.Verb.Capability; need != "" && f.conditional == 0 {
		f.needs[need] = true
	}
	if step.Verb.Needs != nil && f.conditional == 0 {
		if need := step.Verb.Needs(call.known()); need != "" {
			f.needs[need] = true
		}
	}
	if step.Verb.Measures {
		x.measuring(call)
	}
	x.lintStep(step, call, at)
}

// known is the call with those of its arguments that are known before the run.
func (call *Call) known() *verb.Call {
	known := &verb.Call{Verb: call.Verb, Arguments: make([]any, len(call.Arguments))}
	for i, value := range call.Arguments {
		if value != nil {
			known.Arguments[i], _ = value.Constant()
		}
	}
	return known
}

// rnrTimer is the RNR timer of connections by rdma_cm, code 0 (IBTA volume 1, table 45).
const rnrTimer = 655360 * time.Microsecond

// lintStep says what an operation would make of a step.
func (x *expander) lintStep(step *ast.Step, call *Call, at place) {
	f := x.facts
	f.rnrSet = f.rnrSet || setsRNR(call)
	switch step.Verb.Name {
	case "connect":
		x.lintPrivateData(call, at)
		x.lintRetryCounts(call)
		if value, span, ok := given(call, "initiator_depth"); ok && value == 0 && at.role != "" {
			f.zeroDepth[at.role] = span
		}
		if _, span, ok := given(call, "rnr_retry_count"); ok {
			f.rnrRetries = append(f.rnrRetries, span)
		}
	case "accept":
		x.lintPrivateData(call, at)
		x.lintRetryCounts(call)
		f.accepts[at.role] = true
		if _, span, ok := given(call, "retry_count"); ok {
			f.counts = append(f.counts, retryCount{"retry_cnt", diag.Diagnostic{Code: diag.AcceptRetryCount, Span: span,
				Message: "accept ignores retry_count (rdma_accept(3))", Hint: "the count of both sides is that of connect"}})
		}
		if value, span, ok := given(call, "initiator_depth"); ok && value == 0 && at.role != "" {
			f.zeroDepth[at.role] = span
		}
	case "reject":
		x.lintPrivateData(call, at)
	case "post_send", "post_write":
		f.sends[at.role] = true
	case "post_read", "post_atomic", "post_atomic_write", "post_flush":
		f.sends[at.role] = true
		if !call.expectsErrno() {
			f.reads = append(f.reads, readStep{at.role, step.Key.Span()})
		}
	case "wait_event":
		x.lintPadding(call)
	case "poll":
		x.lintTook(step, call, at)
	case "query_qp":
		for _, e := range call.Expect {
			f.looked[e.Field] = f.looked[e.Field] || !e.Default
		}
	}
}

// setsRNR tells whether a step sets the RNR timer, or may let a send fail at its first RNR.
func setsRNR(call *Call) bool {
	for name, harmless := range map[string]func(value any) bool{
		"rnr_retry_count": func(value any) bool { return value != 0 },
		"rnr_retry":       func(value any) bool { return value != 0 },
		"min_rnr_timer":   func(value any) bool { return value == 0 }, // the code of rdma_cm's
	} {
		i := call.Verb.Argument(name)
		if i < 0 || i >= len(call.Arguments) || call.Arguments[i] == nil {
			continue
		}
		if value, known := call.Arguments[i].Constant(); !known || !harmless(value) {
			return true
		}
	}
	return false
}

// lintCase says what only the steps of a case together tell.
func (x *expander) lintCase() {
	f := x.facts
	for _, took := range f.tooShort {
		if !f.rnrSet {
			x.errors.Report(diag.TookBelowRNR, took.span, "%s is below the RNR timer of %s: the send is repeated at least once that late", quantity.Time(took.limit), quantity.Time(rnrTimer)).
				WithHint("an rnr_retry_count of 0 alone fails at once")
		}
	}
	for _, read := range f.reads {
		if span, zero := f.zeroDepth[read.role]; zero {
			x.errors.Report(diag.ReadWithoutDepth, read.span, "%s may have no READ or atomic outstanding: its initiator_depth is 0", read.role).
				WithHint("see line %d; the request will fail or never complete", span.Line)
		}
	}
	// Who looks at what has become of a count knows what it was.
	for _, count := range f.counts {
		if !f.looked[count.attribute] {
			x.errors.Add(&count.warning)
		}
	}
	for role := range f.accepts {
		if f.sends[role] || role == "" || f.looked["rnr_retry"] {
			return
		}
	}
	for _, span := range f.rnrRetries {
		if len(f.accepts) > 0 {
			x.errors.Report(diag.RNRRetryOfConnect, span, "rnr_retry_count of connect governs the sends of the side that accepts, and that sends nothing here").
				WithHint("for sends of the side that connects, give it to accept (rdma_accept(3))")
		}
	}
}

// given is the value of an argument that the scenario gives, when it is known.
func given(call *Call, name string) (any, diag.Span, bool) {
	i := call.Verb.Argument(name)
	if i < 0 || i >= len(call.Arguments) || call.Arguments[i] == nil || !call.given(i) {
		return nil, diag.Span{}, false
	}
	value, known := call.Arguments[i].Constant()
	return value, call.Arguments[i].Span, known
}

// given tells an argument of the scenario from a default, which has the place of the verb.
func (call *Call) given(i int) bool { return call.Arguments[i].Span != call.span }

func (call *Call) expectsErrno() bool {
	if call.Any {
		return true
	}
	for _, e := range call.Expect {
		if e.Field == Errno {
			return true
		}
	}
	return false
}

// lintPadding finds comparisons that hold only where messages are not padded.  A file that requires the
// transport knows what it pads.
func (x *expander) lintPadding(call *Call) {
	if x.wants("transport.ib") || x.wants("transport.iwarp") {
		return
	}
	for _, e := range call.Expect {
		for _, condition := range e.Conditions {
			switch {
			case e.Default || condition.Operator != "eq":
			case e.Field == "private_data":
				x.errors.Report(diag.PaddedData, e.Span, "private data comes padded with zeros on InfiniBand and RoCE").
					WithHint("write private_data: {padded: ..}: these bytes, and then zeros only")
			case e.Field == "private_data_len":
				x.errors.Report(diag.PaddedLength, e.Span, "private data comes padded on InfiniBand and RoCE, so its length is that of the message").
					WithHint("give a lower bound: private_data_len: {ge: ..}")
			}
		}
	}
}

// wants tells whether the file requires something by that name.
func (rs *resolver) wants(requirement string) bool {
	return slices.ContainsFunc(rs.file.Requires, func(n *syntax.Node) bool { return n.Value == requirement })
}

// lintTook finds limits that an RNR wait cannot keep.
func (x *expander) lintTook(step *ast.Step, call *Call, at place) {
	node := step.Took.Get("max")
	if node == nil || node.Kind != syntax.Scalar {
		return
	}
	limit := x.duration("max", node, at)
	if limit == nil {
		return
	}
	known, ok := limit.Constant()
	for _, e := range call.Expect {
		if !ok || e.Field != "status" || e.Default || len(e.Conditions) != 1 || e.Conditions[0].Operator != "eq" {
			continue
		}
		status, _ := e.Conditions[0].Operands[0].Constant()
		if status == "RNR_RETRY_EXC_ERR" && known.(time.Duration) < rnrTimer {
			x.facts.tooShort = append(x.facts.tooShort, limitOfTime{limit.Span, known.(time.Duration)})
		}
	}
}

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
	text, _ := call.constant(name).(string)
	return text
}

func (x *expander) lintPrivateData(call *Call, at place) {
	value, span, ok := given(call, "private_data")
	data, isData := value.(verb.DataValue)
	limits := privateDataLimits[call.Verb.Name]
	limit, space := limits.connection, x.facts.portSpaceNamed(call, at.role)
	switch space {
	case spaceUDP, spaceIPOIB:
		limit = limits.datagram
	case "": // nobody knows before the run
		limit = max(limits.connection, limits.datagram)
	}
	if !ok || !isData || len(data.Bytes) <= limit || call.expectsErrno() || x.wants("transport.iwarp") {
		return
	}
	where := "with RDMA_PS_" + space
	if space == "" {
		where = "at most"
	}
	x.errors.Report(diag.PrivateDataLong, span, "private data is %d bytes; %s carries %d %s on InfiniBand and RoCE", len(data.Bytes), call.Verb.Name, limit, where).
		WithHint("a step that tries it says so: expect: {errno: EINVAL}")
}

// mostRetries is what three bits hold (rdma_connect(3), INFINIBAND SPECIFIC).
const mostRetries = 7

// lintRetryCounts finds counts of which the kernel makes 7.
func (x *expander) lintRetryCounts(call *Call) {
	for name, attribute := range map[string]string{"retry_count": "retry_cnt", "rnr_retry_count": "rnr_retry"} {
		if value, span, ok := given(call, name); ok && value.(int) > mostRetries {
			x.facts.counts = append(x.facts.counts, retryCount{attribute, diag.Diagnostic{Code: diag.RetryCountLarge, Span: span,
				Message: fmt.Sprintf("%s is %d, and counts have three bits: the kernel makes 7 of it", name, value),
				Hint:    "rdma_connect(3), INFINIBAND SPECIFIC; 7 says the same"}})
		}
	}
}

// checkStretch holds a part of a buffer against its size, as far as both are known before the run, where it would be
// refused by the runner and so can be nobody's test.
func (x *expander) checkStretch(call *Call, at place) {
	switch {
	case x.abstract || x.facts.conditional > 0:
		return // what an `if` guards may be right where it runs
	case call.Verb.Argument("offset") < 0 || call.Verb.Name == "rereg":
		return // the part that rereg names is for ibv_rereg_mr to judge
	}
	name, known := call.constant("buffer").(verb.BufferName)
	if !known {
		name, known = call.constant("local").(verb.BufferName)
	}
	owner := at.role
	if name.Role != "" {
		owner = name.Role
	}
	r := x.role(owner)
	if !known || r == nil || r.sizes[name.Name] == 0 {
		return
	}
	size := r.sizes[name.Name]
	offset, offsetKnown := call.constant("offset").(int)
	if !offsetKnown {
		offset = 0 // whatever it is, there is no more room behind it
	}
	if offset > size {
		x.beyond(call, "offset", "offset %s", offset, name, fmt.Sprintf("0 to %s", quantity.Size(int64(size))))
		return
	}
	room := func() string {
		return fmt.Sprintf("at most %s from offset %s", quantity.Size(int64(size-offset)), quantity.Size(int64(offset)))
	}
	if length, given := call.constant("length").(int); given && length > size-offset {
		x.beyond(call, "length", "length %s", length, name, room())
		return
	} else if given {
		size = offset + length
	}
	if data, given := call.constant("data").(verb.DataValue); given && !data.Pattern && len(data.Bytes) > size-offset {
		x.beyond(call, "data", "data of %s bytes", len(data.Bytes), name, room())
	}
	if layout, given := call.constant("fields").(verb.FieldLayout); given && layout.Size() > size-offset {
		x.beyond(call, "fields", "a row of fields of %s bytes", layout.Size(), name, room())
	}
}

func (x *expander) beyond(call *Call, argument, what string, n int, name verb.BufferName, room string) {
	value := call.Arguments[call.Verb.Argument(argument)]
	x.errors.Report(diag.OutOfRange, value.Span, what+" is out of range in buffer %q: %s", quantity.Size(int64(n)), name.String(), room)
}

// constant is the value of an argument that is known before the run; nil for any other.
func (call *Call) constant(name string) any {
	at := call.Verb.Argument(name)
	if at < 0 || at >= len(call.Arguments) || call.Arguments[at] == nil {
		return nil
	}
	value, known := call.Arguments[at].Constant()
	if !known {
		return nil
	}
	return value
}
