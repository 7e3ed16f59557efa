// Package quantity reads and writes amounts with a unit as scenarios have them: sizes in bytes, times, and rates in bits a second.  Scalars,
// expressions and messages share it, so that what one of them writes the others read.
package quantity

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdmarun/host/scenario/diag"
)

var withUnit = regexp.MustCompile(`^(-?[0-9]+(?:\.[0-9]+)?)\s*([A-Za-zµ]+)$`)

// HasUnit tells whether a text is a number with a unit, known or not.
func HasUnit(text string) bool { return withUnit.MatchString(text) }

// ParseSize reads a number of bytes with its unit.
func ParseSize(text string) (int, *diag.Problem) {
	match := withUnit.FindStringSubmatch(text)
	if match == nil {
		return 0, diag.Wrong(diag.WrongType, diag.Quoted(text)+" is not a size", "write a number of bytes, or a number with a unit: 4KiB")
	}
	unit := factorOf(ofSize, match[2])
	if unit == 0 {
		return 0, diag.Wrong(diag.WrongUnit, "no unit of size is called "+diag.Quoted(match[2]), sizeHint(match[2]))
	}
	number, err := strconv.ParseFloat(match[1], 64)
	bytes := number * unit
	switch {
	case err != nil || math.Abs(bytes) > 1<<62:
		return 0, diag.Wrong(diag.OutOfRange, diag.Quoted(text)+" is too large", "")
	case bytes != math.Trunc(bytes):
		return 0, diag.Wrong(diag.WrongUnit, diag.Quoted(text)+" is no whole number of bytes", "")
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
	return thereAre(ofSize)
}

// ParseTime reads a number with its unit of time, or several such; 0 needs none.
func ParseTime(text string) (time.Duration, *diag.Problem) {
	if d, err := time.ParseDuration(text); err == nil {
		return d, nil
	}
	if number := strings.TrimPrefix(text, "-"); number != "" && strings.Trim(number, "0123456789.") == "" {
		return 0, diag.Wrong(diag.WrongUnit, diag.Quoted(text)+" has no unit of time", "seconds are written "+text+"s, milliseconds "+text+"ms")
	}
	if match := withUnit.FindStringSubmatch(text); match != nil {
		return 0, diag.Wrong(diag.WrongUnit, "no unit of time is called "+diag.Quoted(match[2]), timeHint(match[1], match[2]))
	}
	return 0, diag.Wrong(diag.WrongType, diag.Quoted(text)+" is not a duration", "write a number with a unit: 250ms, 5s, 1m30s")
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
	return thereAre(ofTime)
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

// Size writes bytes with the largest power of 1024 that fits exactly, in a form that ParseSize reads.
func Size(n int64) string {
	text := strconv.FormatInt(n, 10)
	for _, each := range units {
		if bytes := int64(each.factor); each.kind == ofSize && strings.HasSuffix(each.name, "iB") && n >= bytes && n%bytes == 0 {
			text = strconv.FormatInt(n/bytes, 10) + each.name
		}
	}
	return text
}

var withRate = regexp.MustCompile(`^(-?[0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*/s)$`)

// ParseRate reads a number of bits a second with its unit.
func ParseRate(text string) (float64, *diag.Problem) {
	match := withRate.FindStringSubmatch(text)
	if match == nil {
		return 0, diag.Wrong(diag.WrongType, diag.Quoted(text)+" is not a rate", "write a number with a unit: 100Gbit/s, 40MB/s")
	}
	unit := factorOf(ofRate, match[2])
	switch {
	case match[2] == "/s":
		return 0, diag.Wrong(diag.WrongUnit, diag.Quoted(text)+" does not say what a second has", "a rate is of bits or bytes, 100Gbit/s; things a second are a number: of type int, and count/s in a threshold")
	case unit == 0:
		return 0, diag.Wrong(diag.WrongUnit, "no unit of rate is called "+diag.Quoted(match[2]), thereAre(ofRate))
	}
	number, err := strconv.ParseFloat(match[1], 64)
	if err != nil || number < 0 || math.IsInf(number*unit, 0) {
		return 0, diag.Wrong(diag.OutOfRange, diag.Quoted(text)+" is out of range", "")
	}
	return number * unit, nil
}

// Rate writes bits a second with the largest unit of bits that is not above them, in a form that ParseRate reads.
func Rate(rate float64) string {
	best := units[slices.IndexFunc(units, func(u unit) bool { return u.kind == ofRate })]
	for _, each := range units {
		if each.kind == ofRate && strings.HasSuffix(each.name, "bit/s") && each.factor <= rate {
			best = each
		}
	}
	return strconv.FormatFloat(rate/best.factor, 'f', -1, 64) + best.name
}
