// Package quantity reads and writes amounts with a unit as scenarios have them: sizes in bytes, times, and rates in
// bits a second.  Scalars, expressions and messages share it, so that what one of them writes the others read.
package quantity

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdmarun/host/scenario/diag"
)

var withUnit = regexp.MustCompile(`^(-?[0-9]+(?:\.[0-9]+)?)\s*([A-Za-zµ]+)$`)

// HasUnit reports whether a text is a number with a unit, known or not.
func HasUnit(text string) bool { return withUnit.MatchString(text) }

// ParseSize reads a number of bytes with its unit.
func ParseSize(text string) (int, *diag.Problem) {
	match := withUnit.FindStringSubmatch(text)
	if match == nil {
		return 0, diag.Wrong(
			diag.WrongType, diag.Quoted(text)+" is not a size",
			"write a number of bytes, or a number with a unit: 4KiB",
		)
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
		return 0, diag.Wrong(diag.WrongUnit, diag.Quoted(text)+" is not a whole number of bytes", "")
	}
	return int(bytes), nil
}

func sizeHint(unit string) string {
	switch strings.ToLower(unit) {
	case "k", "kib":
		return "1024 bytes are 1KiB, 1000 bytes 1kB"
	case "m", "mib":
		return "1024KiB are 1MiB, 1000kB 1MB"
	case "g", "gib":
		return "1024MiB are 1GiB, 1000MB 1GB"
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
		return 0, diag.Wrong(
			diag.WrongUnit, diag.Quoted(text)+" has no unit of time",
			"seconds are written "+text+"s, milliseconds "+text+"ms",
		)
	}
	if match := withUnit.FindStringSubmatch(text); match != nil {
		return 0, diag.Wrong(
			diag.WrongUnit, "no unit of time is called "+diag.Quoted(match[2]), timeHint(match[1], match[2]),
		)
	}
	return 0, diag.Wrong(
		diag.WrongType, diag.Quoted(text)+" is not a duration", "write a number with a unit: 250ms, 5s, 1m30s",
	)
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

// Rounded is Time without digits that mean nothing.
func Rounded(d time.Duration) string {
	switch {
	case d > time.Second:
		d = d.Round(time.Millisecond)
	case d > time.Millisecond:
		d = d.Round(time.Microsecond)
	}
	return Time(d)
}

// ShortTime writes a time for readers, with three digits: 1.32 ms.
func ShortTime(d time.Duration) string {
	switch {
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d.Nanoseconds())
	case d < time.Millisecond:
		return Digits(float64(d)/float64(time.Microsecond), "us")
	case d < time.Second:
		return Digits(float64(d)/float64(time.Millisecond), "ms")
	case d < time.Minute:
		return Digits(d.Seconds(), "s")
	}
	return Time(d.Round(time.Second))
}

// ShortRate writes bits a second for readers, with three digits: 85.3 Gbit/s.
func ShortRate(rate float64) string {
	if rate == 0 {
		return "0 bit/s"
	}
	value, unit := Thousands(rate)
	return Digits(value, unit+"bit/s")
}

// Digits writes a value with three digits, and its unit.
func Digits(value float64, unit string) string {
	switch {
	case value < 9.995: // 9.996 is 10.0
		return fmt.Sprintf("%.2f %s", value, unit)
	case value < 99.95:
		return fmt.Sprintf("%.1f %s", value, unit)
	}
	return fmt.Sprintf("%.0f %s", value, unit)
}

// Thousands splits a number into a short one and the prefix of its unit.
func Thousands(value float64) (short float64, prefix string) {
	for _, prefix := range []string{"", "k", "M", "G"} {
		if value < 1000 {
			return value, prefix
		}
		value /= 1000
	}
	return value, "T"
}

// Size writes bytes with the largest power of 1024 that fits exactly, in a form that ParseSize reads.
func Size(n int64) string {
	text := strconv.FormatInt(n, 10)
	for _, each := range units {
		if bytes := int64(each.factor); each.kind == ofSize && strings.HasSuffix(each.name, "iB") && n >= bytes &&
			n%bytes == 0 {
			text = strconv.FormatInt(n/bytes, 10) + each.name
		}
	}
	return text
}

// Bytes writes bytes for readers, exactly and always with a unit: 64B, 256KiB.  It is the form of sizes in all outputs.
func Bytes(n int64) string {
	if text := Size(n); HasUnit(text) {
		return text
	}
	return strconv.FormatInt(n, 10) + "B"
}

// ShortBytes writes bytes in the form of Bytes.  Where no unit fits exactly, it has three digits: 97.7KiB.  With si,
// the units are powers of 1000: 65.5kB.
func ShortBytes(n int64, si bool) string {
	step, names := int64(1<<10), []string{"KiB", "MiB", "GiB"}
	if si {
		step, names = 1000, []string{"kB", "MB", "GB"}
	}
	value, whole, unit := float64(n), n, "B"
	for _, larger := range names {
		exact := whole > 0 && whole%step == 0 // 4KiB, and not 4096B
		if value < 10*float64(step) && !exact {
			break
		}
		value, unit = value/float64(step), larger
		if whole /= step; !exact {
			whole = 0
		}
	}
	if whole > 0 || unit == "B" {
		return fmt.Sprintf("%.0f%s", value, unit)
	}
	return strings.Replace(Digits(value, unit), " ", "", 1)
}

var withRate = regexp.MustCompile(`^(-?[0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*/s)$`)

// ParseRate reads a number of bits a second with its unit.
func ParseRate(text string) (float64, *diag.Problem) {
	match := withRate.FindStringSubmatch(text)
	if match == nil {
		return 0, diag.Wrong(
			diag.WrongType, diag.Quoted(text)+" is not a rate", "write a number with a unit: 100Gbit/s, 40MB/s",
		)
	}
	unit := factorOf(ofRate, match[2])
	switch {
	case match[2] == "/s":
		return 0, diag.Wrong(
			diag.WrongUnit, diag.Quoted(text)+" does not say what a second has",
			"a rate is of bits or bytes, 100Gbit/s; things a second are a number: of type int, and count/s in a "+
				"threshold",
		)
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

// kind is what a unit is of.
type kind int

const (
	ofTime kind = iota
	ofSize
	ofRate
)

// unit is a row of the units of scenarios.
type unit struct {
	kind      kind
	name, doc string
	// factor is the unit in bytes, or bits a second; times are Go's.
	factor float64
	// also is another way to write it.
	also string
}

// units are in their order, those of a kind and series from the smallest.
var units = []unit{
	{ofTime, "ns", "nanosecond", 0, ""},
	{ofTime, "us", "microsecond, also written with a µ", 0, ""},
	{ofTime, "ms", "millisecond", 0, ""},
	{ofTime, "s", "second", 0, ""},
	{ofTime, "m", "minute", 0, ""},
	{ofTime, "h", "hour", 0, ""},
	{ofSize, "B", "byte; a number alone is as much", 1, ""},
	{ofSize, "KiB", "1024 bytes", 1 << 10, ""},
	{ofSize, "MiB", "1024KiB", 1 << 20, ""},
	{ofSize, "GiB", "1024MiB", 1 << 30, ""},
	{ofSize, "TiB", "1024GiB", 1 << 40, ""},
	{ofSize, "kB", "1000 bytes, also written KB", 1e3, "KB"},
	{ofSize, "MB", "1000kB", 1e6, ""},
	{ofSize, "GB", "1000MB", 1e9, ""},
	{ofSize, "TB", "1000GB", 1e12, ""},
	{ofRate, "bit/s", "bit a second", 1, ""},
	{ofRate, "kbit/s", "1000 bit/s", 1e3, ""},
	{ofRate, "Mbit/s", "1000 kbit/s", 1e6, ""},
	{ofRate, "Gbit/s", "1000 Mbit/s", 1e9, ""},
	{ofRate, "Tbit/s", "1000 Gbit/s", 1e12, ""},
	{ofRate, "B/s", "8 bit/s", 8, ""},
	{ofRate, "kB/s", "1000 B/s", 8e3, ""},
	{ofRate, "MB/s", "1000 kB/s", 8e6, ""},
	{ofRate, "GB/s", "1000 MB/s", 8e9, ""},
	{ofRate, "KiB/s", "1024 B/s", 8 << 10, ""},
	{ofRate, "MiB/s", "1024 KiB/s", 8 << 20, ""},
	{ofRate, "GiB/s", "1024 MiB/s", 8 << 30, ""},
}

// Unit is a unit with what it stands for.
type Unit struct{ Name, Doc string }

// Units lists the units of times and sizes, which expressions may have, too.
func Units() []Unit { return append(of(ofTime), of(ofSize)...) }

// RateUnits lists those of rates.
func RateUnits() []Unit { return of(ofRate) }

func of(k kind) []Unit {
	var list []Unit
	for _, each := range units {
		if each.kind == k {
			list = append(list, Unit{each.name, each.doc})
		}
	}
	return list
}

// Names are those of units.
func Names(list []Unit) []string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	return names
}

// factorOf is what a unit stands for; 0 where none of the kind is called so.
func factorOf(k kind, name string) float64 {
	i := slices.IndexFunc(units, func(u unit) bool {
		return u.kind == k && (u.name == name || u.also == name && name != "")
	})
	if i < 0 {
		return 0
	}
	return units[i].factor
}

// thereAre is the hint with the units of a kind.
func thereAre(k kind) string { return "there are " + strings.Join(Names(of(k)), ", ") }

// Count writes how many there are of something: "1 step", "2 steps".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
