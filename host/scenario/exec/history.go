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
	// forgotten is the list of arguments of a step that is not remembered any more, for another step to use.
	forgotten []any
}

// ring is the last steps of a role, in any order.
type ring struct {
	moments []moment
	oldest  int // the next to be replaced
}

// moment is one call that ran.
type moment struct {
	at, took instant // since the case began
	role     string
	step     *compile.Step
	verb     *verb.Verb
	// arguments are those of the verb, and fields its results, in its order; returned is its error, whatever was
	// expected.
	arguments, fields []any
	returned          error
	outcome           func() string // nil: nothing to say
	err               error
	number            uint32 // for packets; 0 where they are not captured
}

// add remembers an action in place of the oldest one of its role.
func (h *history) add(m moment) {
	r := h.roles[m.role]
	if r == nil {
		r = &ring{}
		h.roles[m.role] = r
	}
	if len(r.moments) < remembered {
		r.moments = append(r.moments, m)
		return
	}
	h.forgotten = r.moments[r.oldest].arguments
	r.moments[r.oldest] = m
	r.oldest = (r.oldest + 1) % remembered
}

// spare takes the list of arguments that was forgotten last; nil when there is none.
func (h *history) spare() []any {
	list := h.forgotten
	h.forgotten = nil
	return list
}

// moments lists what is remembered in the order of time.
func (h *history) moments() []record.Moment {
	var all []moment
	for _, r := range h.roles {
		all = append(all, r.moments...)
	}
	slices.SortFunc(all, func(a, b moment) int { return cmp.Compare(a.at.wall, b.at.wall) })
	all = all[max(0, len(all)-rememberedOfAll):]
	list := make([]record.Moment, len(all))
	for i, m := range all {
		text := strings.TrimSpace(m.verb.Name + " " + m.given())
		if result := m.result(); result != "" {
			text += "  -> " + result
		}
		list[i] = record.Moment{
			At: m.at.wall, Role: m.role, Text: text, File: m.step.Span.File(), Line: m.step.Span.Line,
		}
		if h.virtual {
			list[i].Clock = &all[i].at.clock
		}
	}
	return list
}

// given lists the arguments that differ from their defaults.
func (m *moment) given() string {
	var words []string
	for i := range m.verb.Arguments {
		argument := &m.verb.Arguments[i]
		value := m.arguments[i]
		if value == nil || value == argument.Default || argument.Type == verb.QueuePair ||
			argument.Type == verb.Layout {
			continue
		}
		switch {
		case argument.Type == verb.Boolean && value == true:
			words = append(words, argument.Name)
		case argument.Type == verb.Condition:
			words = append(words, value.(verb.ConditionValue).Text)
		case verb.ObjectOf(argument.Type) != nil,
			slices.Contains([]verb.Type{verb.Role, verb.Buffer, verb.Word, verb.Peer}, argument.Type):
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

// writeStep writes the record of an action.
func (r *caseRun) writeStep(m *moment) {
	step := &record.Step{
		Role: m.role, Action: m.verb.Name, Text: m.given(), Outcome: m.result(),
		Line: m.step.Span.Line, Column: m.step.Span.Column,
		At: m.at.wall, Took: m.took.wall, OK: m.err == nil, Tags: r.tags, XFail: r.known, Used: r.used(),
	}
	if r.history.virtual {
		step.Clock = &record.StepTimes{At: m.at.clock, Took: m.took.clock}
	}
	if rest, failed := strings.CutPrefix(step.Outcome, "FAILED: "); failed && r.known != "" {
		step.Outcome = "XFAILED: " + rest
	}
	if file := m.step.Span.File(); file != r.program.File {
		step.File = file
	}
	var errno syscall.Errno
	if errors.As(m.returned, &errno) {
		step.Errno = verb.ErrnoName(errno)
	}
	for i, value := range m.fields {
		if value != nil {
			result := &m.verb.Results[i]
			step.Fields = append(step.Fields, record.Field{
				Name: result.Name, Value: recorded(value, result), Varies: result.Varies,
			})
		}
	}
	step.Packets, step.MorePackets = r.packets.take(m.number)
	r.config.Stream.Write(&record.Record{
		Kind: record.StepEnd, File: r.program.File, Case: r.testCase.ID, Step: step, Common: r.common,
	})
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
