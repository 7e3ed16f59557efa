package plan

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"rdmarun/host/scenario/diag"
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

// parseInteger reads decimal, 0x, 0o and 0b numbers.
func parseInteger(text string) (int, *problem) {
	clean := strings.ReplaceAll(text, "_", "")
	if n, err := strconv.ParseInt(clean, 0, 64); err == nil && !leadingZero(clean) {
		return int(n), nil
	}
	// Keys and identifiers may use all 64 bits.
	if n, err := strconv.ParseUint(clean, 0, 64); err == nil && !leadingZero(clean) {
		return int(n), nil
	}
	hint := ""
	switch {
	case leadingZero(clean):
		hint = "octal numbers are written 0o" + strings.TrimLeft(clean, "0")
	case quantity.MatchString(text):
		hint = "it has no unit"
	}
	return 0, wrongType("an integer", quoted(text), hint)
}

// leadingZero finds what C takes for octal and people for decimal.
func leadingZero(text string) bool {
	return len(text) > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9'
}

var quantity = regexp.MustCompile(`^(-?[0-9]+(?:\.[0-9]+)?)\s*([A-Za-zµ]+)$`)

// sizeUnits are the units of sizes: powers of 1024 with an i, of 1000 without.
var sizeUnits = map[string]float64{
	"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	"kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
}

// parseSize reads a number of bytes, alone or with a unit.
func parseSize(text string) (int, *problem) {
	if n, bad := parseInteger(text); bad == nil {
		return n, nil
	}
	match := quantity.FindStringSubmatch(text)
	if match == nil {
		return 0, wrongType("a size", quoted(text), "write a number of bytes, or a number with a unit: 4KiB")
	}
	unit, known := sizeUnits[match[2]]
	if !known {
		return 0, &problem{diag.WrongUnit, "no unit of size is called " + quoted(match[2]), sizeHint(match[2])}
	}
	number, err := strconv.ParseFloat(match[1], 64)
	bytes := number * unit
	switch {
	case err != nil || math.Abs(bytes) > 1<<62:
		return 0, &problem{diag.OutOfRange, quoted(text) + " is too large", ""}
	case bytes != math.Trunc(bytes):
		return 0, &problem{diag.WrongUnit, quoted(text) + " is no whole number of bytes", ""}
	}
	return int(bytes), nil
}

func sizeHint(unit string) string {
	switch strings.ToLower(unit) {
	case "k", "kib":
		return "1024 bytes are 1KiB, 1000 bytes 1kB"
	case "m", "mib":
		return "1024 KiB are 1MiB, 1000 kB 1MB"
	case "g", "gib":
		return "1024 MiB are 1GiB, 1000 MB 1GB"
	case "b", "byte", "bytes":
		return "write the number alone, or with B"
	}
	return "there are B, KiB, MiB, GiB, TiB and kB, MB, GB, TB"
}

// parseDuration reads a number with its unit; 0 needs none.
func parseDuration(text string) (time.Duration, *problem) {
	if d, err := time.ParseDuration(text); err == nil {
		return d, nil
	}
	if number := strings.TrimPrefix(text, "-"); number != "" && strings.Trim(number, "0123456789.") == "" {
		return 0, &problem{diag.WrongUnit, quoted(text) + " has no unit of time", "seconds are written " + text + "s, milliseconds " + text + "ms"}
	}
	if match := quantity.FindStringSubmatch(text); match != nil {
		hint := "there are ns, us, ms, s, m and h"
		switch strings.ToLower(match[2]) {
		case "sec", "secs", "second", "seconds":
			hint = "seconds are written " + match[1] + "s"
		case "min", "mins", "minute", "minutes":
			hint = "minutes are written " + match[1] + "m"
		case "msec", "msecs", "millisecond", "milliseconds":
			hint = "milliseconds are written " + match[1] + "ms"
		case "usec", "microsecond", "microseconds":
			hint = "microseconds are written " + match[1] + "us"
		}
		return 0, &problem{diag.WrongUnit, "no unit of time is called " + quoted(match[2]), hint}
	}
	return 0, wrongType("a duration", quoted(text), "write a number with a unit: 250ms, 5s, 1m30s")
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

func quoted(text string) string {
	if len(text) > 40 {
		text = text[:37] + "..."
	}
	return strconv.Quote(text)
}
