package plot

import (
	"math"
	"strconv"
)

// Axis says which values are shown, and where.
type Axis struct {
	// Label says of what the values are; empty where each tick says it.
	Label string
	// Low and High are the ends.
	Low, High float64
	// Logarithmic has the same distance between 1 and 10 as between 10 and 100.
	Logarithmic bool
	// Ticks are values that have a line and a text.
	Ticks []float64
	// Print is a value as text at a tick, Exact the text for a point; nil is as Print.
	Print, Exact func(float64) string
}

// Even is an axis from low to high. Its ticks are multiples of 1, 2 or 5 times a power of ten, about as many as given.
func Even(low, high float64, about int) Axis {
	if !(high > low) {
		high = low + max(1e-9, math.Abs(low)) // one value, or none: it is at the low end
	}
	step := roundStep((high - low) / float64(about))
	a := Axis{Low: low, High: high, Print: Number}
	// The slack is for what adding up floating numbers loses.
	for i := math.Ceil(low/step - 1e-9); i*step <= high+step*1e-9; i++ {
		a.Ticks = append(a.Ticks, i*step)
	}
	return a
}

// FromZero is an even axis from nothing to a tick at or above high.
func FromZero(high float64, about int) Axis {
	if !(high > 0) {
		high = 1
	}
	step := roundStep(high / float64(about))
	return Even(0, step*math.Ceil(high/step-1e-9), about)
}

// roundStep is the distance of ticks next above the given one.
func roundStep(least float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, times := range []float64{1, 2, 5} {
		if times*power >= least*(1-1e-9) {
			return times * power
		}
	}
	return 10 * power
}

// Powers is a logarithmic axis. It begins at 1, 2 or 5 times a power of ten at or below low, and ends at one at or
// above high. Its ticks are all such values, or the powers of ten, or some of these, so that there are no more than
// most.
func Powers(low, high float64, most int) Axis {
	if !(low > 0) {
		low = 1e-3
	}
	if !(high > low*(1+1e-6)) { // one value is at the low end
		high = 2 * low
	}
	all := powers(low, high)
	a := Axis{Logarithmic: true, Low: all[0].value, High: all[len(all)-1].value, Print: Number}
	for every := 0; ; every++ { // 0 is for all, then each power of ten, then each second one
		a.Ticks = nil
		for _, each := range all {
			if every == 0 || each.times == 1 && each.exponent%every == 0 {
				a.Ticks = append(a.Ticks, each.value)
			}
		}
		if len(a.Ticks) <= most {
			return a
		}
	}
}

type power struct {
	value    float64
	times    float64
	exponent int
}

// powers are 1, 2 and 5 times powers of ten, from the last at or below low to the first at or above high.
func powers(low, high float64) []power {
	const slack = 1e-9
	var list []power
	for exponent := int(math.Floor(math.Log10(low))) - 1; ; exponent++ {
		for _, times := range []float64{1, 2, 5} {
			value := times * math.Pow10(exponent)
			if value <= low*(1+slack) {
				list = list[:0] // those before are below what is to be shown
			}
			list = append(list, power{value, times, exponent})
			if value >= high*(1-slack) {
				return list
			}
		}
	}
}

// fraction is the position of a value, from 0 at the low end to 1 at the high one.
func (a *Axis) fraction(value float64) float64 {
	low, high := a.Low, a.High
	if a.Logarithmic {
		low, high, value = math.Log(low), math.Log(high), math.Log(max(value, math.SmallestNonzeroFloat64))
	}
	return min(1, max(0, (value-low)/(high-low)))
}

// text is what a reader sees of a value.
func (a *Axis) text(value float64) string {
	if a.Exact != nil {
		return a.Exact(value)
	}
	return a.Print(value)
}

// Number prints four digits of a value, from a thousand on with k, M or G.
func Number(value float64) string {
	if value == 0 {
		return "0" // and never -0
	}
	suffix := ""
	for _, each := range []string{"k", "M", "G"} {
		if math.Abs(value) < 1000 {
			break
		}
		value, suffix = value/1000, each
	}
	return strconv.FormatFloat(value, 'g', 4, 64) + suffix
}
