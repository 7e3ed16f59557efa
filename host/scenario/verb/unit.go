package verb

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/quantity"
)

// Units are the units of values that a program prints, by their names.
type Units map[string]Unit

// String lists the names, sorted, with the units.
func (u Units) String() string {
	var words []string
	for name, unit := range u {
		words = append(words, name+"="+unit.Name)
	}
	slices.Sort(words)
	return strings.Join(words, ",")
}

// Unit is what a printed number counts; the zero Unit is text.
type Unit struct {
	Name string
	// measures is what a value of it is, in base units: record.Nanoseconds and others; "" for text.
	measures record.Unit
	// factor is the unit in base units.
	factor float64
}

// unitsOfOutput are the units that only programs print.  perftest's MB is of 2^20 bytes (perftest_resources.h, MEGA
// 0x100000 as FORMAT MBS).
var unitsOfOutput = []struct {
	measures record.Unit
	words    string
	factor   float64
}{
	{record.Nanoseconds, "ns nsec", 1},
	{record.Nanoseconds, "us usec", 1e3},
	{record.Nanoseconds, "ms msec", 1e6},
	{record.Nanoseconds, "s sec", 1e9},
	{record.BitsPerSecond, "Gb/sec Gbps", 1e9},
	{record.BitsPerSecond, "Mb/sec Mbps", 1e6},
	{record.BitsPerSecond, "MB/sec", 8 << 20},
	{record.BitsPerSecond, "MiB/sec", 8 << 20},
	{record.PerSecond, "/s", 1},
	{record.PerSecond, "kpps", 1e3},
	{record.PerSecond, "Mpps", 1e6},
	{record.Number, "number", 1},
}

// UnitOf finds a unit by its name.
func UnitOf(name string) (Unit, bool) {
	for _, each := range unitsOfOutput {
		if slices.Contains(strings.Fields(each.words), name) {
			return Unit{name, each.measures, each.factor}, true
		}
	}
	if name == "text" {
		return Unit{Name: name}, true
	}
	if bits, bad := quantity.ParseRate("1" + name); bad == nil {
		return Unit{name, record.BitsPerSecond, bits}, true
	}
	if bytes, bad := quantity.ParseSize("1" + name); bad == nil {
		return Unit{name, record.Bytes, float64(bytes)}, true
	}
	return Unit{}, false
}

// UnitNames lists the units.
func UnitNames() []string {
	names := []string{"text"}
	for _, each := range unitsOfOutput {
		names = append(names, strings.Fields(each.words)...)
	}
	for _, each := range append(quantity.RateUnits(), quantity.Units()...) {
		if _, is := UnitOf(each.Name); is && !slices.Contains(names, each.Name) {
			names = append(names, each.Name)
		}
	}
	return names
}

// Measures is what a value of the unit counts in records; "" for text.
func (u Unit) Measures() record.Unit { return u.measures }

// resultType is that of a value of the unit in expressions.
func (u Unit) resultType() Type {
	switch u.measures {
	case "":
		return Text
	case record.Nanoseconds:
		return Duration
	case record.BitsPerSecond:
		return Rate
	case record.Bytes:
		return Size
	}
	return Number
}

// parse reads what a program has printed: in base units, and as a value of Type.
func (u Unit) parse(text string) (base float64, value any, err error) {
	if u.measures == "" {
		return 0, text, nil
	}
	number, bad := strconv.ParseFloat(text, 64)
	base = number * u.factor
	if bad != nil || math.IsNaN(base) || math.Abs(base) > 1<<62 {
		return 0, nil, fmt.Errorf("a number of %s", u.Name)
	}
	switch u.measures {
	case record.Nanoseconds:
		return base, time.Duration(math.Round(base)), nil
	case record.Bytes:
		return base, int(base), nil
	}
	return base, base, nil
}
