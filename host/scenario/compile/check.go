package compile

import (
	"fmt"
	"net/netip"
	"time"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/verb"
)

// check applies the argument's bounds and words.
func check(argument *verb.Argument, value any) *problem {
	switch v := value.(type) {
	case int:
		if bad := outside(argument, int64(v)); bad && argument.Type == verb.Size {
			return outOfRange(argument, quantity.Size(int64(v)), quantity.Size)
		} else if bad {
			return outOfRange(argument, fmt.Sprint(v), func(n int64) string { return fmt.Sprint(n) })
		}
	case uint64:
		switch {
		case argument.Type == verb.Unsigned || argument.Min == 0 && argument.Max == 0:
		case argument.Max >= unbounded:
			return beyondInteger(fmt.Sprint(v))
		default:
			return outOfRange(argument, fmt.Sprint(v), func(n int64) string { return fmt.Sprint(n) })
		}
	case time.Duration:
		if outside(argument, int64(v)) {
			return outOfRange(argument, quantity.Time(v), func(n int64) string { return quantity.Time(time.Duration(n)) })
		}
	case float64:
		if argument.Type == verb.Fraction && (v < 0 || v > 1) {
			return &problem{diag.OutOfRange, fmt.Sprint(v) + " is out of range: 0 to 1", ""}
		}
	case []int:
		return checkSizes(argument, v)
	case string:
		return checkWord(argument, v)
	}
	return nil
}

// unbounded stands for "no bound" on one side.
const unbounded = 1 << 62

func outOfRange(argument *verb.Argument, value string, show func(int64) string) *problem {
	bounds := show(argument.Min) + " to " + show(argument.Max)
	switch {
	case argument.Max >= unbounded, argument.Min == argument.Max: // of a size without bounds
		bounds = "at least " + show(argument.Min)
	case argument.Min <= -unbounded:
		bounds = "at most " + show(argument.Max)
	}
	return &problem{diag.OutOfRange, value + " is out of range: " + bounds, ""}
}

func outside(argument *verb.Argument, n int64) bool {
	if argument.Min == 0 && argument.Max == 0 {
		return argument.Type == verb.Size && n < 0
	}
	return n < argument.Min || n > argument.Max
}

func checkWord(argument *verb.Argument, word string) *problem {
	switch argument.Type {
	case verb.Word:
		if len(argument.Words) == 0 {
			return nil // an enum without values, which is an error of its own
		}
		for _, known := range argument.Words {
			if known == word {
				return nil
			}
		}
		hint := diag.DidYouMean(word, argument.Words)
		if hint == "" {
			hint = diag.ThereAre(argument.Words)
		}
		return &problem{diag.NotOneOf, fmt.Sprintf("%s cannot be %s", argument.Name, quoted(word)), hint}
	case verb.Address:
		if _, err := netip.ParseAddr(word); err != nil && word != "any" {
			return wrongType("an IP address", quoted(word), "write an address of this machine, or any")
		}
	}
	return nil
}
