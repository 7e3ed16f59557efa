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

// facts are those of the steps of a case that checks of the whole case use.
type facts struct {
	calls []noted
	// conditional counts the `if`s around the current step.
	conditional int
	// sources are the steps that measure.
	sources []*source
	// long are the steps with a duration of their own.
	long []lasting
	// portSpaces are those of endpoints, "" where they are known only in the run.
	portSpaces map[endpointName]string
}

// noted is a call of a step.
type noted struct {
	*Call
	role string
	// conditional is set inside of an `if`.
	conditional bool
	// limit is the largest `took` of a poll for an RNR error, if it is shorter than the RNR timer; else nil.
	limit *Value
}

// lasting is a step with a duration of its own.
type lasting struct {
	what  string
	takes time.Duration
	span  diag.Span
	// onClock means that it takes so long on the provider's clock, and not on the wall clock.
	onClock bool
	// measures means that a threshold with abort_on_fail may end it earlier.
	measures bool
	// of has a shorter timeout, of limit.
	of    string
	limit time.Duration
}

// endpointName is an endpoint of a role.
type endpointName struct{ role, name string }

func newFacts() *facts { return &facts{portSpaces: make(map[endpointName]string)} }

// clone lets several cases begin where the setup has ended.
func (f *facts) clone() *facts {
	return &facts{
		calls: slices.Clip(f.calls), sources: slices.Clip(f.sources), long: slices.Clip(f.long),
		portSpaces: maps.Clone(f.portSpaces),
	}
}

// merge adds the facts of other steps of the case.
func (f *facts) merge(other *facts) {
	f.calls, f.sources, f.long = append(f.calls, other.calls...), append(f.sources, other.sources...),
		append(f.long, other.long...)
	maps.Copy(f.portSpaces, other.portSpaces)
}

// since are the facts that came after earlier ones.
func (f *facts) since(earlier *facts) *facts {
	return &facts{
		calls: f.calls[len(earlier.calls):], sources: f.sources[len(earlier.sources):],
		long:       f.long[len(earlier.long):],
		portSpaces: f.portSpaces,
	}
}

// note keeps the facts of a step, and makes the checks that need one step alone.
func (x *expander) note(step *ast.Step, call *Call, at place) {
	seen := noted{Call: call, role: at.role, conditional: x.facts.conditional > 0}
	switch {
	case step.Verb.Measures:
		x.measuring(call)
	case step.Verb.OfProgram:
		x.printing(call, at)
	}
	if step.Verb.PrivateData != nil {
		x.lintPrivateData(call, at)
	}
	switch step.Verb.Name {
	case verb.WaitEvent:
		x.lintPadding(call)
	case verb.Poll:
		seen.limit = x.limitOfRNR(step, call, at)
	}
	x.facts.calls = append(x.facts.calls, seen)
}

// known is the call with those of its arguments that are known before the run.
func (call *Call) known() *verb.Call {
	count := len(call.Arguments)
	known := &verb.Call{Verb: call.Verb, Arguments: make([]any, count), Deferred: make([]bool, count)}
	for i, value := range call.Arguments {
		if value != nil {
			constant, ok := value.Constant()
			known.Arguments[i], known.Deferred[i] = constant, !ok
		}
	}
	return known
}

// argument is the value of an argument; nil for one that the verb or the step does not have.
func (call *Call) argument(name string) *Value {
	if i := call.Verb.Argument(name); i >= 0 && i < len(call.Arguments) {
		return call.Arguments[i]
	}
	return nil
}

// constant is the value of an argument that is known before the run; nil for any other.
func (call *Call) constant(name string) any {
	if value := call.argument(name); value != nil {
		known, _ := value.Constant()
		return known
	}
	return nil
}

// given is the value of an argument that the scenario gives, when it is known.  A default has the place of the verb.
func (call *Call) given(name string) (known any, span diag.Span, ok bool) {
	value := call.argument(name)
	if value == nil || value.Span == call.span {
		return nil, diag.Span{}, false
	}
	known, ok = value.Constant()
	return known, value.Span, ok
}

func (call *Call) expectsErrno() bool {
	return call.Any || slices.ContainsFunc(call.Expect, func(e Expectation) bool { return e.Field == Errno })
}

// rnrTimer is the RNR timer of connections by rdma_cm, code 0 (IBTA volume 1, table 45).
const rnrTimer = 655360 * time.Microsecond

// rnrArguments set the RNR timer, or may let a send fail at its first RNR, unless they have these values.
var rnrArguments = map[string]func(value any) bool{
	"rnr_retry_count": func(value any) bool { return value != 0 },
	"rnr_retry":       func(value any) bool { return value != 0 },
	"min_rnr_timer":   func(value any) bool { return value == 0 }, // the code of rdma_cm's
}

func (call *Call) setsRNR() bool {
	for name, harmless := range rnrArguments {
		if value := call.argument(name); value != nil {
			if known, ok := value.Constant(); !ok || !harmless(known) {
				return true
			}
		}
	}
	return false
}

// lasts notes a step with a duration of its own, and checks that no timeout of it or of a step around it is shorter.
// Another branch of parallel steps may end a measurement, by a fault.
func (x *expander) lasts(step lasting) {
	if step.measures && len(x.branches) > 0 {
		return
	}
	for _, around := range slices.Backward(x.around) {
		if around.Timeout == nil {
			continue
		}
		if limit, known := around.Timeout.Constant(); known && limit.(time.Duration) < step.takes {
			x.noteLong(step, "step", limit.(time.Duration))
			return
		}
	}
	x.facts.long = append(x.facts.long, step)
}

// noteLong notes a step that takes longer than it may.  In the cases of a matrix it does so once.
func (x *expander) noteLong(step lasting, of string, limit time.Duration) {
	step.of, step.limit = of, limit
	if !slices.Contains(x.long, step) {
		x.long = append(x.long, step)
	}
}

// lintTimeout finds steps that take longer than their case may.
func (x *expander) lintTimeout(compiled *Case) {
	aborts := slices.ContainsFunc(compiled.Thresholds, func(t *Threshold) bool { return t.Abort })
	for _, step := range x.facts.long {
		if step.takes > compiled.Timeout && !(step.measures && aborts) {
			x.noteLong(step, "case", compiled.Timeout)
		}
	}
}

// reportLong warns of steps that take longer than they may.  Timeouts are times of the wall, so those on a virtual
// clock are not too long.
func (x *expander) reportLong(virtual bool) {
	for _, step := range x.long {
		if step.onClock && virtual {
			continue
		}
		x.errors.Report(
			diag.BeyondTimeout, step.span, "%s %s, and the %s has a timeout of %s", step.what,
			quantity.Time(step.takes), step.of, quantity.Time(step.limit),
		).
			WithHint(
				"timeout: %s leaves room for what else is done",
				quantity.Time((step.takes + step.takes/4).Round(time.Millisecond)),
			)
	}
}

// lintCase makes the checks that need all steps of a case.
func (x *expander) lintCase() {
	rnrSet := false                         // the RNR timer need not be what rdma_cm makes it
	zeroDepth := make(map[string]diag.Span) // of the initiator_depth, by the role that connects with 0
	accepts, sends := make(map[string]bool), make(map[string]bool)
	looked := make(map[string]bool) // attributes of queue pairs that steps expect something of
	for _, call := range x.facts.calls {
		rnrSet = rnrSet || call.setsRNR()
		if call.Verb.Sends {
			sends[call.role] = true
		}
		switch call.Verb.Name {
		case verb.Accept:
			accepts[call.role] = true
			fallthrough
		case verb.Connect:
			if value, span, ok := call.given("initiator_depth"); ok && value == 0 && call.role != "" {
				zeroDepth[call.role] = span
			}
		case verb.QueryQP:
			for _, e := range call.Expect {
				looked[e.Field] = looked[e.Field] || !e.Default
			}
		}
	}
	acceptorSends := false
	for role := range accepts {
		acceptorSends = acceptorSends || sends[role] || role == ""
	}
	for _, call := range x.facts.calls {
		if call.limit != nil && !rnrSet {
			x.errors.Report(diag.TookBelowRNR, call.limit.Span, "%s is below the RNR timer of %s: the send is "+
				"repeated at least once that late",
				quantity.Time(call.limit.constant.(time.Duration)), quantity.Time(rnrTimer)).
				WithHint("an rnr_retry_count of 0 alone fails at once")
		}
		if depth, zero := zeroDepth[call.role]; zero && call.Verb.Outstanding && !call.expectsErrno() {
			x.errors.Report(
				diag.ReadWithoutDepth, call.span, "%s may have no READ or atomic outstanding: its initiator_depth is 0",
				call.role,
			).
				WithHint("see line %d; the request will fail or never complete", depth.Line)
		}
		x.lintRetryCounts(call.Call, looked)
		if call.Verb.Name != verb.Connect || len(accepts) == 0 || acceptorSends || looked["rnr_retry"] {
			continue
		}
		if _, span, ok := call.given("rnr_retry_count"); ok {
			x.errors.Report(
				diag.RNRRetryOfConnect, span,
				"rnr_retry_count of connect governs the sends of the side that accepts, and that sends nothing here",
			).
				WithHint("for sends of the side that connects, give it to accept (rdma_accept(3))")
		}
	}
}

// maxRetries is what three bits hold (rdma_connect(3), INFINIBAND SPECIFIC).
const maxRetries = 7

// lintRetryCounts finds counts that do not arrive at the queue pair as they are written.  A scenario that queries the
// attribute gets no warning.
func (x *expander) lintRetryCounts(call *Call, looked map[string]bool) {
	if call.Verb.Name != verb.Connect && call.Verb.Name != verb.Accept {
		return
	}
	for name, attribute := range map[string]string{"retry_count": "retry_cnt", "rnr_retry_count": "rnr_retry"} {
		value, span, ok := call.given(name)
		if !ok || looked[attribute] {
			continue
		}
		if value.(int) > maxRetries {
			x.errors.Report(
				diag.RetryCountLarge, span, "%s is %d, and counts have three bits: the kernel makes 7 of it", name,
				value,
			).
				WithHint("rdma_connect(3), INFINIBAND SPECIFIC; 7 says the same")
		}
		if name == "retry_count" && call.Verb.Name == verb.Accept {
			x.errors.Report(diag.AcceptRetryCount, span, "accept ignores retry_count (rdma_accept(3))").
				WithHint("the count of both sides is that of connect")
		}
	}
}

// lintPadding finds comparisons that hold only where messages are not padded.  A file that requires the
// transport gets no warning.
func (x *expander) lintPadding(call *Call) {
	if x.requires("transport.ib") || x.requires("transport.iwarp") {
		return
	}
	for _, e := range call.Expect {
		for _, condition := range e.Conditions {
			switch {
			case e.Default || condition.Name != "eq":
			case e.Field == "private_data":
				x.errors.Report(diag.PaddedData, e.Span, "private data comes padded with zeros on InfiniBand and RoCE").
					WithHint("write private_data: {padded: ..}: these bytes, and then zeros only")
			case e.Field == "private_data_len":
				x.errors.Report(
					diag.PaddedLength, e.Span,
					"private data comes padded on InfiniBand and RoCE, so its length is that of the message",
				).
					WithHint("give a lower bound: private_data_len: {ge: ..}")
			}
		}
	}
}

// requires reports whether the file requires something by that name.
func (rs *resolver) requires(requirement string) bool {
	return slices.ContainsFunc(rs.file.Requires, func(n *syntax.Node) bool { return n.Value == requirement })
}

// limitOfRNR is the time limit of a poll that expects a send to fail for lack of receives. It returns the limit if
// that is below the RNR timer; nil for any other.
func (x *expander) limitOfRNR(step *ast.Step, call *Call, at place) *Value {
	node := step.Took.Get("max")
	if node == nil || node.Kind != syntax.Scalar {
		return nil
	}
	limit := x.duration("max", node, at)
	if limit == nil {
		return nil
	}
	known, ok := limit.Constant()
	for _, e := range call.Expect {
		if !ok || e.Field != "status" || e.Default || len(e.Conditions) != 1 || e.Conditions[0].Name != "eq" {
			continue
		}
		status, _ := e.Conditions[0].Operands[0].Constant()
		if status == "RNR_RETRY_EXC_ERR" && known.(time.Duration) < rnrTimer {
			return limit
		}
	}
	return nil
}

// Port spaces that differ in how much private data their messages carry.
const (
	spaceTCP   = "TCP"
	spaceUDP   = "UDP"
	spaceIPOIB = "IPOIB"
)

// portSpaceOf is the port space of the endpoint that a call makes, "" when it is known only in the run.
func (f *facts) portSpaceOf(call *Call, role string) string {
	switch call.Verb.Name {
	case verb.CreateID:
		return call.text("port_space")
	case verb.WaitEvent, verb.GetRequest:
		return f.portSpaceNamed(call, role)
	case verb.CreateEP, verb.Bind:
		return spaceTCP
	}
	return "" // get_event: of whichever endpoint
}

// portSpaceNamed is the port space of the endpoint that a call is about.
func (f *facts) portSpaceNamed(call *Call, role string) string {
	return f.portSpaces[endpointName{role, call.text("ep")}]
}

func (call *Call) text(name string) string {
	text, _ := call.constant(name).(string)
	return text
}

func (x *expander) lintPrivateData(call *Call, at place) {
	value, span, ok := call.given("private_data")
	data, isData := value.(verb.DataValue)
	limits := call.Verb.PrivateData
	limit, space := limits.Connection, x.facts.portSpaceNamed(call, at.role)
	switch space {
	case spaceUDP, spaceIPOIB:
		limit = limits.Datagram
	case "": // not known before the run
		limit = max(limits.Connection, limits.Datagram)
	}
	if !ok || !isData || len(data.Bytes) <= limit || call.expectsErrno() || x.requires("transport.iwarp") {
		return
	}
	where := "with RDMA_PS_" + space
	if space == "" {
		where = "at most"
	}
	x.errors.Report(
		diag.PrivateDataLong, span, "private data is %d bytes; %s carries %d %s on InfiniBand and RoCE",
		len(data.Bytes), call.Verb.Name, limit, where,
	).
		WithHint("expect the error: expect: {errno: EINVAL}")
}

// checkStretch checks a part of a buffer against its size, as far as both are known before the run.  The runner would
// reject it, so no test can need it.
func (x *expander) checkStretch(call *Call, at place) {
	switch {
	case x.abstract || x.facts.conditional > 0:
		return // what an `if` guards may be right where it runs
	case call.Verb.Argument("offset") < 0 || call.Verb.Name == verb.Rereg:
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
	r := x.roles[owner]
	if !known || r == nil || r.sizes[name.Name] == 0 {
		return
	}
	size := r.sizes[name.Name]
	offset, offsetKnown := call.constant("offset").(int)
	if !offsetKnown {
		offset = 0 // for any offset the rest is not larger
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
	x.errors.Report(
		diag.OutOfRange, call.argument(argument).Span, what+" is out of range in buffer %q: %s",
		quantity.Size(int64(n)), name.String(), room,
	)
}
