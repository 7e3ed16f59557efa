package compile

import (
	"slices"
	"time"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/syntax"
)

// rnrTimer is the RNR timer of connections by rdma_cm, code 0 (IBTA volume 1, table 45).
const rnrTimer = 655360 * time.Microsecond

// lintStep says what an operation would make of a step.
func (c *compiler) lintStep(step *ast.Step, call *Call, at place) {
	f := c.facts
	f.rnrSet = f.rnrSet || setsRNR(call)
	switch step.Verb.Name {
	case "connect":
		c.lintPrivateData(call, at)
		c.lintRetryCounts(call)
		if value, span, ok := given(call, "initiator_depth"); ok && value == 0 && at.role != "" {
			f.zeroDepth[at.role] = span
		}
		if _, span, ok := given(call, "rnr_retry_count"); ok {
			f.rnrRetries = append(f.rnrRetries, span)
		}
	case "accept":
		c.lintPrivateData(call, at)
		c.lintRetryCounts(call)
		f.accepts[at.role] = true
		if _, span, ok := given(call, "retry_count"); ok {
			f.counts = append(f.counts, retryCount{"retry_cnt", diag.Diagnostic{Code: diag.AcceptRetryCount, Span: span,
				Message: "accept ignores retry_count (rdma_accept(3))", Hint: "the count of both sides is that of connect"}})
		}
		if value, span, ok := given(call, "initiator_depth"); ok && value == 0 && at.role != "" {
			f.zeroDepth[at.role] = span
		}
	case "reject":
		c.lintPrivateData(call, at)
	case "post_send", "post_write":
		f.sends[at.role] = true
	case "post_read", "post_atomic", "post_atomic_write", "post_flush":
		f.sends[at.role] = true
		if !call.expectsErrno() {
			f.reads = append(f.reads, readStep{at.role, step.Key.Span()})
		}
	case "wait_event":
		c.lintPadding(call)
	case "poll":
		c.lintTook(step, call, at)
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
func (c *compiler) lintCase() {
	f := c.facts
	for _, took := range f.tooShort {
		if !f.rnrSet {
			c.errors.Report(diag.TookBelowRNR, took.span, "%s is below the RNR timer of %s: the send is repeated at least once that late", quantity.Time(took.limit), quantity.Time(rnrTimer)).
				WithHint("an rnr_retry_count of 0 alone fails at once")
		}
	}
	for _, read := range f.reads {
		if span, zero := f.zeroDepth[read.role]; zero {
			c.errors.Report(diag.ReadWithoutDepth, read.span, "%s may have no READ or atomic outstanding: its initiator_depth is 0", read.role).
				WithHint("see line %d; the request will fail or never complete", span.Line)
		}
	}
	// Who looks at what has become of a count knows what it was.
	for _, count := range f.counts {
		if !f.looked[count.attribute] {
			c.errors.Add(&count.warning)
		}
	}
	for role := range f.accepts {
		if f.sends[role] || role == "" || f.looked["rnr_retry"] {
			return
		}
	}
	for _, span := range f.rnrRetries {
		if len(f.accepts) > 0 {
			c.errors.Report(diag.RNRRetryOfConnect, span, "rnr_retry_count of connect governs the sends of the side that accepts, and that sends nothing here").
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
func (c *compiler) lintPadding(call *Call) {
	if c.wants("transport.ib") || c.wants("transport.iwarp") {
		return
	}
	for _, e := range call.Expect {
		for _, condition := range e.Conditions {
			switch {
			case e.Default || condition.Operator != "eq":
			case e.Field == "private_data":
				c.errors.Report(diag.PaddedData, e.Span, "private data comes padded with zeros on InfiniBand and RoCE").
					WithHint("write private_data: {padded: ..}: these bytes, and then zeros only")
			case e.Field == "private_data_len":
				c.errors.Report(diag.PaddedLength, e.Span, "private data comes padded on InfiniBand and RoCE, so its length is that of the message").
					WithHint("give a lower bound: private_data_len: {ge: ..}")
			}
		}
	}
}

// wants tells whether the file requires something by that name.
func (c *compiler) wants(requirement string) bool {
	return slices.ContainsFunc(c.file.Requires, func(n *syntax.Node) bool { return n.Value == requirement })
}

// lintTook finds limits that an RNR wait cannot keep.
func (c *compiler) lintTook(step *ast.Step, call *Call, at place) {
	node := step.Took.Get("max")
	if node == nil || node.Kind != syntax.Scalar {
		return
	}
	limit := c.duration("max", node, at)
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
			c.facts.tooShort = append(c.facts.tooShort, limitOfTime{limit.Span, known.(time.Duration)})
		}
	}
}
