package terminal

import (
	"fmt"
	"strings"
	"time"

	"rdmarun/host/scenario/quantity"
)

// Duration prints a time with three digits, as people say it.
func Duration(d time.Duration) string {
	switch {
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d.Nanoseconds())
	case d < time.Millisecond:
		return digits(float64(d)/float64(time.Microsecond), "us")
	case d < time.Second:
		return digits(float64(d)/float64(time.Millisecond), "ms")
	case d < time.Minute:
		return digits(d.Seconds(), "s")
	}
	return quantity.Time(d.Round(time.Second))
}

func digits(value float64, unit string) string {
	switch {
	case value < 10:
		return fmt.Sprintf("%.2f %s", value, unit)
	case value < 100:
		return fmt.Sprintf("%.1f %s", value, unit)
	}
	return fmt.Sprintf("%.0f %s", value, unit)
}

// Units are those in which people want to read a run; the zero Units are KiB, MiB and times.
type Units struct {
	// SI shows sizes in steps of 1000: kB, MB.
	SI bool
	// PerNanosecond, unless 0, is how many cycles of the processor a nanosecond has: measured times are then
	// shown in cycles.
	PerNanosecond float64
}

// Time prints a time that was measured.
func (u Units) Time(d time.Duration) string {
	if u.PerNanosecond == 0 {
		return Duration(d)
	}
	return fmt.Sprintf("%.0f cycles", float64(d)*u.PerNanosecond)
}

// Bytes prints an amount of data.
func (u Units) Bytes(n int64) string {
	step, names := 1<<10, []string{"KiB", "MiB", "GiB"}
	if u.SI {
		step, names = 1000, []string{"kB", "MB", "GB"}
	}
	value, whole, unit := float64(n), n, "B"
	for _, larger := range names {
		exact := whole > 0 && whole%int64(step) == 0 // 4 KiB, and not 4096 B
		if value < 10*float64(step) && !exact {
			break
		}
		value, unit = value/float64(step), larger
		if whole /= int64(step); !exact {
			whole = 0
		}
	}
	if whole > 0 || unit == "B" {
		return fmt.Sprintf("%.0f %s", value, unit)
	}
	return digits(value, unit)
}

func (u Units) nanoseconds(n int64) string { return u.Time(time.Duration(n)) }

// BitRate prints bits a second with three digits.
func BitRate(rate float64) string {
	value, unit := thousands(rate)
	return digits(value, unit+"bit/s")
}

// PerSecond prints how many a second with three digits, for a column that says so.
func PerSecond(rate float64) string {
	value, unit := thousands(rate)
	return strings.TrimSpace(digits(value, unit))
}

// thousands splits a number into a short one and the prefix of its unit.
func thousands(value float64) (short float64, prefix string) {
	for _, prefix := range []string{"", "k", "M", "G"} {
		if value < 1000 {
			return value, prefix
		}
		value /= 1000
	}
	return value, "T"
}
