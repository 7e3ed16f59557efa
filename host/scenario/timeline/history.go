package timeline

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

// remembered is the number of steps of each role that a failure shows.
const remembered = 4

// MaxOfAll bounds the steps that a failure shows, if a counted role has many instances.
const MaxOfAll = 40

// History keeps the last steps of each role.  It makes their texts only for a failure.
type History struct {
	// Virtual is set where the provider's clock is virtual.
	Virtual bool
	roles   map[string]*ring
	// forgotten is the argument list of a step that was dropped, for reuse.
	forgotten []any
}

// NewHistory returns an empty history.
func NewHistory(virtual bool) *History {
	return &History{Virtual: virtual, roles: make(map[string]*ring)}
}

// ring is the last steps of a role, in any order.
type ring struct {
	moments []Moment
	oldest  int // the next to be replaced
}

// Moment is one call that ran.
type Moment struct {
	At, Took Instant // since the case began
	Role     string
	Step     *compile.Step
	Verb     *verb.Verb
	// Arguments are those of the verb, and Fields its results, in its order; Returned is its error, expected or not.
	Arguments, Fields []any
	Returned          error
	Outcome           func() string // nil: no result
	Err               error
	Number            uint32 // for packets; 0 where they are not captured
}

// Add adds an action in place of the oldest one of its role.
func (h *History) Add(m Moment) {
	r := h.roles[m.Role]
	if r == nil {
		r = &ring{}
		h.roles[m.Role] = r
	}
	if len(r.moments) < remembered {
		r.moments = append(r.moments, m)
		return
	}
	h.forgotten = r.moments[r.oldest].Arguments
	r.moments[r.oldest] = m
	r.oldest = (r.oldest + 1) % remembered
}

// Spare returns the argument list that was dropped last; nil without one.
func (h *History) Spare() []any {
	list := h.forgotten
	h.forgotten = nil
	return list
}

// Moments returns the kept steps in the order of time.
func (h *History) Moments() []record.Moment {
	var all []Moment
	for _, r := range h.roles {
		all = append(all, r.moments...)
	}
	slices.SortFunc(all, func(a, b Moment) int { return cmp.Compare(a.At.Wall, b.At.Wall) })
	all = all[max(0, len(all)-MaxOfAll):]
	list := make([]record.Moment, len(all))
	for i, m := range all {
		text := strings.TrimSpace(m.Verb.Name + " " + m.given())
		if result := m.result(); result != "" {
			text += "  -> " + result
		}
		list[i] = record.Moment{
			At: m.At.Wall, Role: m.Role, Text: text, File: m.Step.Span.File(), Line: m.Step.Span.Line,
		}
		if h.Virtual {
			list[i].Clock = &all[i].At.Clock
		}
	}
	return list
}

// given returns the arguments that differ from their defaults.
func (m *Moment) given() string {
	var words []string
	for i := range m.Verb.Arguments {
		argument := &m.Verb.Arguments[i]
		value := m.Arguments[i]
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

// inHex reports whether the scenario writes an argument in hex.
func (m *Moment) inHex(argument int) bool {
	call, is := m.Step.Action.(*compile.Call)
	return is && argument < len(call.Arguments) && call.Arguments[argument] != nil && call.Arguments[argument].Hex
}

func (m *Moment) result() string {
	if m.Err != nil {
		var failure *testbed.Failure
		if errors.As(m.Err, &failure) {
			return "FAILED: " + failure.What
		}
		return "FAILED: " + m.Err.Error()
	}
	if m.Outcome != nil {
		return m.Outcome()
	}
	return ""
}

// Record is the record of an action.
func (m *Moment) Record(virtual bool) *record.Step {
	step := &record.Step{
		Role: m.Role, Action: m.Verb.Name, Text: m.given(), Outcome: m.result(),
		Line: m.Step.Span.Line, Column: m.Step.Span.Column, At: m.At.Wall, Took: m.Took.Wall, OK: m.Err == nil,
	}
	if virtual {
		step.Clock = &record.StepTimes{At: m.At.Clock, Took: m.Took.Clock}
	}
	var errno syscall.Errno
	if errors.As(m.Returned, &errno) {
		step.Errno = verb.ErrnoName(errno)
	}
	for i, value := range m.Fields {
		if value != nil {
			result := &m.Verb.Results[i]
			step.Fields = append(step.Fields, record.Field{
				Name: result.Name, Value: recorded(value, result), Varies: result.Varies,
			})
		}
	}
	return step
}

// recorded is a value in full: bytes are hexadecimal digits, without a limit.
func recorded(value any, result *verb.Result) string {
	if data, ok := value.([]byte); ok {
		return hex.EncodeToString(data)
	}
	if result.Hex {
		return compile.ShowHex(value, result.Type)
	}
	return compile.Show(value, result.Type)
}
