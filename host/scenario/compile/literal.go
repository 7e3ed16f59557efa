package compile

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/verb"
)

// problem is what is wrong with a value, before it has a position.
type problem = diag.Problem

func wrongType(want, got, hint string) *problem {
	return diag.Wrong(diag.WrongType, got+" is not "+want, hint)
}

// parseInteger reads a number that an int holds.
func parseInteger(text string) (int, *problem) {
	value, bad := parseNumber(text)
	if bad != nil {
		return 0, bad
	}
	n, fits := value.(int)
	if !fits {
		return 0, beyondInteger(text)
	}
	return n, nil
}

func beyondInteger(text string) *problem {
	return diag.Wrong(diag.OutOfRange, fmt.Sprintf("%s is out of range: at most %d", text, math.MaxInt64), "")
}

// parseNumber reads decimal, 0x, 0o and 0b numbers: an int, or a uint64 where an int is too small.
func parseNumber(text string) (any, *problem) {
	clean := strings.ReplaceAll(text, "_", "")
	if n, err := strconv.ParseInt(clean, 0, 64); err == nil && !leadingZero(clean) {
		return int(n), nil
	}
	// Keys and identifiers may use all 64 bits.
	if n, err := strconv.ParseUint(clean, 0, 64); err == nil && !leadingZero(clean) {
		return n, nil
	}
	hint := ""
	switch {
	case leadingZero(clean):
		hint = "octal numbers are written 0o" + strings.TrimLeft(clean, "0")
	case quantity.HasUnit(text):
		hint = "it has no unit"
	}
	return nil, wrongType("an integer", quoted(text), hint)
}

// hexWritten reports whether a number is written in hex.
func hexWritten(text string) bool {
	text = strings.TrimPrefix(text, "-")
	return strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "0X")
}

// leadingZero finds what C takes for octal and people for decimal.
func leadingZero(text string) bool {
	return len(text) > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9'
}

// parseSize reads a number of bytes, alone or with a unit.
func parseSize(text string) (int, *problem) {
	if n, bad := parseInteger(text); bad == nil || bad.Code == diag.OutOfRange {
		return n, bad
	}
	return quantity.ParseSize(text)
}

// parseFraction reads 0.05 or 5%.
func parseFraction(text string) (float64, *problem) {
	number, percent := strings.CutSuffix(text, "%")
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, wrongType("a number from 0 to 1", quoted(text), "write 0.05, or 5%")
	}
	if percent {
		f /= 100
	}
	return f, nil
}

func parseFloat(text string) (float64, *problem) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, wrongType("a number", quoted(text), "")
	}
	return f, nil
}

func parseBoolean(text string) (bool, *problem) {
	switch text {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	hint := "write true or false"
	switch strings.ToLower(text) {
	case "yes", "on", "y":
		hint = "write true"
	case "no", "off", "n":
		hint = "write false"
	}
	return false, wrongType("true or false", quoted(text), hint)
}

func quoted(text string) string { return diag.Quoted(text) }

// parseStatus reads the status of a CM event: a number, an errno (which events carry negative), or a
// reject reason.
func parseStatus(text string) (int, *problem) {
	if n, bad := parseInteger(text); bad == nil {
		return n, nil
	}
	if errno, ok := verb.ParseErrno(text); ok {
		return -int(errno), nil
	}
	if reason, ok := verb.ParseRejectReason(text); ok {
		return reason, nil
	}
	names := append(verb.ErrnoNames(), verb.RejectReasons()...)
	return 0, diag.Wrong(diag.NotOneOf, quoted(text)+" is not a status of an event", diag.DidYouMean(text, names))
}

// noErrno is the errno 0 of a call that must succeed, in `expect: {errno: 0}`.
const noErrno = "0"

// errnoArgument describes what `expect: {errno: ..}` takes.
func errnoArgument() *verb.Argument {
	return &verb.Argument{Name: "errno", Type: verb.Word, Words: append(verb.ErrnoNames(), noErrno)}
}

// check applies the argument's bounds and words.
func check(argument *verb.Argument, value any) *problem {
	switch v := value.(type) {
	case int:
		show := func(n int64) string { return strconv.FormatInt(n, 10) }
		if argument.Type == verb.Size {
			show = quantity.Size
		}
		return checkBounds(argument, int64(v), show)
	case uint64:
		switch {
		case argument.Type == verb.Unsigned || argument.Min == 0 && argument.Max == 0:
		case argument.Max >= unbounded:
			return beyondInteger(fmt.Sprint(v))
		default:
			return outOfRange(argument, fmt.Sprint(v), func(n int64) string { return fmt.Sprint(n) })
		}
	case time.Duration:
		return checkBounds(argument, int64(v), func(n int64) string { return quantity.Time(time.Duration(n)) })
	case float64:
		if argument.Type == verb.Fraction && (v < 0 || v > 1) {
			hint := ""
			if v > 1 && v <= 100 {
				hint = fmt.Sprintf("100%% is all; %.4g%% is written %.4g%%, or %.4g", v, v, v/100)
			}
			return diag.Wrong(
				diag.OutOfRange, fmt.Sprintf("%v (%.4g%%) is out of range: 0 to 1, or 0%% to 100%%", v, v*100), hint,
			)
		}
	case []int:
		if argument.Type == verb.Sizes {
			return checkSizes(argument, v)
		}
	case string:
		return checkWord(argument, v)
	}
	return nil
}

// unbounded stands for "no bound" on one side.
const unbounded = 1 << 62

// checkBounds applies the bounds of a number; show writes one.
func checkBounds(argument *verb.Argument, n int64, show func(int64) string) *problem {
	inside := argument.Min <= n && n <= argument.Max
	if argument.Min == 0 && argument.Max == 0 {
		inside = argument.Type != verb.Size || n >= 0
	}
	if inside {
		return nil
	}
	wrong := outOfRange(argument, show(n), show)
	if n == 0 && strings.Contains(argument.Doc, "default none") {
		wrong.Hint = fmt.Sprintf("leave out %q for none", argument.Name)
	}
	return wrong
}

func outOfRange(argument *verb.Argument, value string, show func(int64) string) *problem {
	bounds := show(argument.Min) + " to " + show(argument.Max)
	switch {
	case argument.Max >= unbounded, argument.Min == argument.Max: // of a size without bounds
		bounds = "at least " + show(argument.Min)
	case argument.Min <= -unbounded:
		bounds = "at most " + show(argument.Max)
	}
	return diag.Wrong(diag.OutOfRange, value+" is out of range: "+bounds, "")
}

func checkWord(argument *verb.Argument, word string) *problem {
	switch argument.Type {
	case verb.Word:
		// an enum without values is an error of its own
		if len(argument.Words) > 0 && !slices.Contains(argument.Words, word) {
			return diag.Wrong(diag.NotOneOf, argument.Name+" cannot be "+quoted(word), diag.OneOf(word, argument.Words))
		}
	case verb.Address:
		if _, err := netip.ParseAddr(word); err != nil && word != "any" {
			return wrongType("an IP address", quoted(word), "write an address of this machine, or any")
		}
	}
	return nil
}
