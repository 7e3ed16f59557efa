package html

import (
	"fmt"
	"time"
)

// duration prints a time with three digits.
func duration(d time.Duration) string {
	three := func(value float64, unit string) string {
		switch {
		case value < 10:
			return fmt.Sprintf("%.2f\u202f%s", value, unit)
		case value < 100:
			return fmt.Sprintf("%.1f\u202f%s", value, unit)
		}
		return fmt.Sprintf("%.0f\u202f%s", value, unit)
	}
	switch {
	case d <= 0:
		return "0"
	case d < time.Microsecond:
		return fmt.Sprintf("%d\u202fns", d)
	case d < time.Millisecond:
		return three(float64(d)/1e3, "µs")
	case d < time.Second:
		return three(float64(d)/1e6, "ms")
	case d < time.Minute:
		return three(d.Seconds(), "s")
	}
	return d.Round(time.Second).String()
}

// size prints bytes.
func size(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}
