// Package quantity reads and writes amounts with a unit as scenarios have them: sizes in bytes, and times.  Scalars,
// expressions and messages share it, so that what one of them writes the others read.
package quantity

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"rdmarun/host/scenario/diag"
)

// Error is why a text is no quantity.
type Error struct {
	Code    diag.Code
	Message string
	Hint    string
}

func (e *Error) Error() string { return e.Message }

var withUnit = regexp.MustCompile(`^(-?[0-9]+(?:\.[0-9]+)?)\s*([A-Za-zµ]+)$`)

// HasUnit tells whether a text is a number with a unit, known or not.
func HasUnit(text string) bool { return withUnit.MatchString(text) }

// sizeUnits are the units of sizes: powers of 1024 with an i, of 1000 without.
var sizeUnits = map[string]float64{
	"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	"kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
}

const (
	allSizes = "there are B, KiB, MiB, GiB, TiB and kB, MB, GB, TB"
	allTimes = "there are ns, us, ms, s, m and h"
)

// Unit is a unit with what it stands for.
type Unit struct{ Name, Doc string }

// Units lists the units of times and sizes.
func Units() []Unit {
	return []Unit{
		{"ns", "nanosecond"}, {"us", "microsecond, also written with a µ"}, {"ms", "millisecond"}, {"s", "second"}, {"m", "minute"}, {"h", "hour"},
		{"B", "byte; a number alone is as much"}, {"KiB", "1024 bytes"}, {"MiB", "1024 KiB"}, {"GiB", "1024 MiB"}, {"TiB", "1024 GiB"},
		{"kB", "1000 bytes, also written KB"}, {"MB", "1000 kB"}, {"GB", "1000 MB"}, {"TB", "1000 GB"},
	}
}

// UnitNames are their names.
func UnitNames() []string {
	var names []string
	for _, unit := range Units() {
		names = append(names, unit.Name)
	}
	return names
}

// ParseSize reads a number of bytes with its unit.
func ParseSize(text string) (int, *Error) {
	match := withUnit.FindStringSubmatch(text)
	if match == nil {
		return 0, &Error{diag.WrongType, diag.Quoted(text) + " is not a size", "write a number of bytes, or a number with a unit: 4KiB"}
	}
	unit, known := sizeUnits[match[2]]
	if !known {
		return 0, &Error{diag.WrongUnit, "no unit of size is called " + diag.Quoted(match[2]), sizeHint(match[2])}
	}
	number, err := strconv.ParseFloat(match[1], 64)
	bytes := number * unit
	switch {
	case err != nil || math.Abs(bytes) > 1<<62:
		return 0, &Error{diag.OutOfRange, diag.Quoted(text) + " is too large", ""}
	case bytes != math.Trunc(bytes):
		return 0, &Error{diag.WrongUnit, diag.Quoted(text) + " is no whole number of bytes", ""}
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
	return allSizes
}

// ParseTime reads a number with its unit of time, or several such; 0 needs none.
func ParseTime(text string) (time.Duration, *Error) {
	if d, err := time.ParseDuration(text); err == nil {
		return d, nil
	}
	if number := strings.TrimPrefix(text, "-"); number != "" && strings.Trim(number, "0123456789.") == "" {
		return 0, &Error{diag.WrongUnit, diag.Quoted(text) + " has no unit of time", "seconds are written " + text + "s, milliseconds " + text + "ms"}
	}
	if match := withUnit.FindStringSubmatch(text); match != nil {
		return 0, &Error{diag.WrongUnit, "no unit of time is called " + diag.Quoted(match[2]), timeHint(match[1], match[2])}
	}
	return 0, &Error{diag.WrongType, diag.Quoted(text) + " is not a duration", "write a number with a unit: 250ms, 5s, 1m30s"}
}

func timeHint(number, unit string) string {
	switch strings.ToLower(unit) {
	case "sec", "secs", "second", "seconds":
		return "seconds are written " + number + "s"
	case "min", "mins", "minute", "minutes":
		return "minutes are written " + number + "m"
	case "msec", "msecs", "millisecond", "milliseconds":
		return "milliseconds are written " + number + "ms"
	case "usec", "microsecond", "microseconds":
		return "microseconds are written " + number + "us"
	}
	return allTimes
}

// Time writes a time with all its digits, in the form that ParseTime reads: 26.207us, 655.36ms, 1.5s, 1m30s, 24h.
func Time(d time.Duration) string {
	text := strings.Replace(d.String(), "µ", "u", 1)
	for _, empty := range []struct{ ends, shorter string }{{"m0s", "m"}, {"h0m", "h"}} {
		if head, found := strings.CutSuffix(text, empty.ends); found {
			text = head + empty.shorter
		}
	}
	return text
}

// Size writes bytes with the largest unit that fits exactly, in a form that ParseSize reads.
func Size(n int64) string {
	for _, unit := range []struct {
		name  string
		bytes int64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return strconv.FormatInt(n/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}
