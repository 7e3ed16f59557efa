package compile

import (
	"bytes"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"time"

	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/verb"
	"rdmarun/rdmacore"
)

// Check compares a field with the expectation.  When it does not hold, want says in words what was
// wanted.  The error is an EvaluationError.
func (e *Expectation) Check(env expression.Env, got any) (ok bool, want string, err error) {
	ok = true
	var wants []string
	for i := range e.Conditions {
		condition := &e.Conditions[i]
		operands := make([]any, len(condition.Operands))
		for j, operand := range condition.Operands {
			if operands[j], err = operand.Get(env); err != nil {
				return false, "", err
			}
		}
		if !holds(condition.Operator, got, operands) {
			ok = false
			wants = append(wants, describe(condition.Operator, operands, e.Show))
		}
	}
	return ok, strings.Join(wants, " and "), nil
}

func holds(operator string, got any, operands []any) bool {
	if got == nil {
		return false
	}
	switch operator {
	case "eq":
		return equal(got, operands[0])
	case "ne":
		return !equal(got, operands[0])
	case "any_of":
		for _, operand := range operands {
			if equal(got, operand) {
				return true
			}
		}
		return false
	case "prefix":
		return bytes.HasPrefix(asBytes(got), asBytes(operands[0]))
	case "padded":
		padding, begins := bytes.CutPrefix(asBytes(got), asBytes(operands[0]))
		return begins && len(bytes.Trim(padding, "\x00")) == 0
	case "re":
		return operands[0].(*regexp.Regexp).Match(asBytes(got))
	}
	order := func(i int) int { return compareNumbers(got, operands[i]) }
	switch operator {
	case "lt":
		return order(0) < 0
	case "le":
		return order(0) <= 0
	case "gt":
		return order(0) > 0
	case "ge":
		return order(0) >= 0
	case "between":
		return order(0) >= 0 && order(1) <= 0
	default: // approx
		low, high := around(operands)
		value := number(got)
		return value.Cmp(low) >= 0 && value.Cmp(high) <= 0
	}
}

// around is the range of approx.
func around(operands []any) (low, high *big.Int) {
	center, width := number(operands[0]), number(operands[1])
	if p, relative := operands[1].(percent); relative {
		part := new(big.Float).Mul(new(big.Float).SetInt(new(big.Int).Abs(center)), big.NewFloat(float64(p)))
		width, _ = part.Quo(part, big.NewFloat(100)).Int(nil)
	}
	return new(big.Int).Sub(center, width), new(big.Int).Add(center, width)
}

// compareNumbers tells the order of two integers, with a sign or without, or of two times.
func compareNumbers(a, b any) int { return number(a).Cmp(number(b)) }

func equal(got, want any) bool {
	switch w := want.(type) {
	case verb.DataValue:
		return bytes.Equal(asBytes(got), w.Bytes)
	case []byte:
		return bytes.Equal(asBytes(got), w)
	case int:
		if _, wide := got.(uint64); wide {
			return Bits(got) == Bits(want)
		}
	case uint64:
		if _, small := got.(int); small {
			return Bits(got) == Bits(want)
		}
	}
	return got == want
}

func asBytes(value any) []byte {
	switch v := value.(type) {
	case []byte:
		return v
	case verb.DataValue:
		return v.Bytes
	case string:
		return []byte(v)
	}
	return nil
}

// number makes integers, with a sign or without, and durations comparable.
func number(value any) *big.Int {
	if d, is := value.(time.Duration); is {
		return big.NewInt(int64(d))
	}
	if n := expression.Exact(value); n != nil {
		return n
	}
	return new(big.Int)
}

// describe says what an operator wants.
func describe(operator string, operands []any, show func(any) string) string {
	words := make([]string, len(operands))
	for i, operand := range operands {
		words[i] = show(operand)
	}
	switch operator {
	case "eq":
		return words[0]
	case "ne":
		return "anything but " + words[0]
	case "any_of":
		return "one of " + strings.Join(words, ", ")
	case "prefix":
		return "something that begins with " + words[0]
	case "padded":
		return words[0] + " and then zeros only"
	case "re":
		return "something like /" + operands[0].(*regexp.Regexp).String() + "/"
	case "between":
		return "between " + words[0] + " and " + words[1]
	case "approx":
		if p, relative := operands[1].(percent); relative {
			words[1] = fmt.Sprintf("%g%%", float64(p))
		}
		return words[0] + " ± " + words[1]
	}
	return map[string]string{"lt": "less than ", "le": "at most ", "gt": "more than ", "ge": "at least "}[operator] + words[0]
}

// longestShown is how many bytes of data a message shows.
const longestShown = 48

// Show prints a value of the field, in hex where the scenario writes it so or the kernel's tools do.
func (e *Expectation) Show(value any) string {
	if e.Hex {
		return ShowHex(value, e.Type)
	}
	return Show(value, e.Type)
}

// ShowHex is Show with integers in hex.
func ShowHex(value any, t verb.Type) string {
	switch value.(type) {
	case int, uint64:
		return fmt.Sprintf("%#x", value)
	}
	return Show(value, t)
}

// Show prints a value for a message: statuses with their names, data as text where it is text.
func Show(value any, t verb.Type) string {
	switch v := value.(type) {
	case nil:
		return "no value"
	case int:
		if t == verb.Status && v != 0 {
			return rdmacore.RejectReason(v)
		}
	case time.Duration:
		return quantity.Time(v)
	case verb.DataValue:
		return showBytes(v.Bytes)
	case []byte:
		return showBytes(v)
	case []string:
		if t == verb.Words {
			return strings.Join(v, "|")
		}
	case string:
		if t == verb.Text {
			return fmt.Sprintf("%q", v)
		}
	}
	return fmt.Sprint(value)
}

func showBytes(b []byte) string {
	body := bytes.TrimRight(b, "\x00") // private data is padded with zeros
	padding := len(b) - len(body)
	shown := body[:min(len(body), longestShown)]
	text := fmt.Sprintf("% x", shown)
	if printable(shown) {
		text = fmt.Sprintf("%q", shown)
	}
	if len(shown) < len(body) {
		text += fmt.Sprintf(" and %d bytes more", len(body)-len(shown))
	}
	if padding > 0 {
		text += fmt.Sprintf(" and %d zero bytes", padding)
	}
	return strings.TrimPrefix(text, "\"\" and ")
}

func printable(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}
