package exec

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
)

// remembered is how many steps of each role a failure shows.
const remembered = 4

// rememberedOfAll bounds that where a counted role has many instances.
const rememberedOfAll = 40

// history keeps the last steps of each role.  Words are made of them only when a failure wants them.
type history struct {
	virtual bool // the provider's clock
	roles   map[string]*ring
}

type ring struct {
	moments [remembered]moment
	next    int
	full    bool
}

// moment is one step that ran.
type moment struct {
	at   instant // since the case began
	role string
	step *compile.Step
	verb *verb.Verb // nil for what is no verb
	// arguments are those of the verb, in its order.
	arguments []any
	text      string        // of what is no verb
	outcome   func() string // nil: nothing to say
	err       error
}

// add notes a step.  It returns the list of arguments of the one that it forgets for it, for another call to use.
func (h *history) add(m moment) (forgotten []any) {
	if h.roles == nil {
		h.roles = make(map[string]*ring)
	}
	r := h.roles[m.role]
	if r == nil {
		r = &ring{}
		h.roles[m.role] = r
	}
	forgotten = r.moments[r.next].arguments
	r.moments[r.next] = m
	r.next = (r.next + 1) % remembered
	r.full = r.full || r.next == 0
	return forgotten
}

// moments lists what is remembered in the order of time.
func (h *history) moments() []record.Moment {
	var all []moment
	for _, r := range h.roles {
		if r.full {
			all = append(all, r.moments[:]...)
		} else {
			all = append(all, r.moments[:r.next]...)
		}
	}
	slices.SortFunc(all, func(a, b moment) int { return cmp.Compare(a.at.wall, b.at.wall) })
	all = all[max(0, len(all)-rememberedOfAll):]
	list := make([]record.Moment, len(all))
	for i, m := range all {
		text := strings.TrimSpace(m.action() + " " + m.given())
		if result := m.result(); result != "" {
			text += "  -> " + result
		}
		list[i] = record.Moment{At: m.at.wall, Role: m.role, Text: text, File: m.step.Span.File(), Line: m.step.Span.Line}
		if h.virtual {
			list[i].Clock = &all[i].at.clock
		}
	}
	return list
}

func (m *moment) action() string {
	if m.verb == nil {
		return m.text
	}
	return m.verb.Name
}

// given lists the arguments that differ from their defaults.
func (m *moment) given() string {
	if m.verb == nil {
		return ""
	}
	var words []string
	for i := range m.verb.Arguments {
		argument := &m.verb.Arguments[i]
		value := m.arguments[i]
		if value == nil || value == argument.Default || argument.Type == verb.QueuePair || argument.Type == verb.Layout {
			continue
		}
		switch {
		case argument.Type == verb.Boolean && value == true:
			words = append(words, argument.Name)
		case argument.Type == verb.Condition:
			words = append(words, value.(verb.ConditionValue).Text)
		case argument.Type == verb.Endpoint, argument.Type == verb.Role, argument.Type == verb.FaultName, argument.Type.NamesObject(), argument.Type == verb.Buffer, argument.Type == verb.Word, argument.Type == verb.Peer:
			words = append(words, fmt.Sprint(value))
		case argument.Type == verb.Remote:
			remote := value.(verb.RemoteMemory)
			words = append(words, fmt.Sprintf("%s=%#x rkey=%#x", argument.Name, remote.Address, remote.RKey))
		case m.inHex(i):
			words = append(words, argument.Name+"="+compile.ShowHex(value, argument.Type))
		case argument.Type == verb.OptionList:
			words = append(words, fmt.Sprintf("%s=%d", argument.Name, len(value.([]map[string]any))))
		default:
			words = append(words, argument.Name+"="+compile.Show(value, argument.Type))
		}
	}
	return strings.Join(words, " ")
}

// inHex tells whether the scenario writes an argument in hex.
func (m *moment) inHex(argument int) bool {
	call, is := m.step.Action.(*compile.Call)
	return is && argument < len(call.Arguments) && call.Arguments[argument] != nil && call.Arguments[argument].Hex
}

func (m *moment) result() string {
	if m.err != nil {
		var failure *testbed.Failure
		if errors.As(m.err, &failure) {
			return "FAILED: " + failure.What
		}
		return "FAILED: " + m.err.Error()
	}
	if m.outcome != nil {
		return m.outcome()
	}
	return ""
}

func (r *caseRun) stepRecord(m moment, took instant) *record.Step {
	step := &record.Step{
		Role: m.role, Action: m.action(), Text: m.given(), Outcome: m.result(),
		Line: m.step.Span.Line, Column: m.step.Span.Column,
		At: m.at.wall, Took: took.wall, OK: m.err == nil, Tags: r.tags, XFail: r.known, Used: r.used(),
	}
	if r.history.virtual {
		step.Clock = &record.StepTimes{At: m.at.clock, Took: took.clock}
	}
	if file := m.step.Span.File(); file != r.program.File {
		step.File = file
	}
	return step
}

func (r *caseRun) writeStep(step *record.Step) {
	r.config.Stream.Write(&record.Record{Kind: record.StepEnd, File: r.program.File, Case: r.testCase.ID, Step: step})
}

// returnedFields are a call's results for the record, those without a value left out.
func returnedFields(v *verb.Verb, outcome *verb.Outcome) []record.Field {
	var fields []record.Field
	for i, value := range outcome.Fields {
		if value == nil {
			continue
		}
		result := &v.Results[i]
		fields = append(fields, record.Field{Name: result.Name, Value: recorded(value, result), Varies: result.Varies})
	}
	return fields
}

// recorded shows a value in full: bytes as hexadecimal digits, however many.
func recorded(value any, result *verb.Result) string {
	if data, ok := value.([]byte); ok {
		return hex.EncodeToString(data)
	}
	if result.Hex {
		return compile.ShowHex(value, result.Type)
	}
	return compile.Show(value, result.Type)
}

func returnedErrno(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return verb.ErrnoName(errno)
	}
	return ""
}
