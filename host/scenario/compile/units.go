package compile

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/quantity"
)

// problem is what is wrong with a value, before it has a position.
type problem struct {
	code    diag.Code
	message string
	hint    string
}

func (p *problem) Error() string { return p.message }

func wrongType(want, got, hint string) *problem {
	return &problem{diag.WrongType, got + " is not " + want, hint}
}

// problemOf is what is wrong with a quantity; nil for nothing.
func problemOf(bad *quantity.Error) *problem {
	if bad == nil {
		return nil
	}
	return &problem{bad.Code, bad.Message, bad.Hint}
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
	return &problem{diag.OutOfRange, fmt.Sprintf("%s is out of range: at most %d", text, math.MaxInt64), ""}
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

// Bits are those of an integer, with a sign or without.
func Bits(value any) uint64 {
	if n, signed := value.(int); signed {
		return uint64(n)
	}
	n, _ := value.(uint64)
	return n
}

// hexWritten tells whether a number is written in hex.
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
	if n, bad := parseInteger(text); bad == nil || bad.code == diag.OutOfRange {
		return n, bad
	}
	n, bad := quantity.ParseSize(text)
	return n, problemOf(bad)
}

// parseDuration reads a number with its unit; 0 needs none.
func parseDuration(text string) (time.Duration, *problem) {
	d, bad := quantity.ParseTime(text)
	return d, problemOf(bad)
}

// parseRate reads a number of bits a second with its unit.
func parseRate(text string) (float64, *problem) {
	rate, bad := quantity.ParseRate(text)
	return rate, problemOf(bad)
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
