package compile

import (
	"maps"
	"slices"
	"time"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
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
func (f *facts) note(c *compiler, step *ast.Step, call *Call, at place) {
	if need := step.Verb.Capability; need != "" && f.conditional == 0 {
		f.needs[need] = true
	}
	if step.Verb.Needs != nil && f.conditional == 0 {
		if need := step.Verb.Needs(call.known()); need != "" {
			f.needs[need] = true
		}
	}
	if step.Verb.Measures {
		c.measuring(call)
	}
	c.lintStep(step, call, at)
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
