package report

import (
	"fmt"
	"time"
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
	return d.Round(time.Second).String()
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

// bytes prints an amount of data.
func bytes(n int64) string {
	switch {
	case n < 10<<10:
		return fmt.Sprintf("%d B", n)
	case n < 10<<20:
		return digits(float64(n)/(1<<10), "KiB")
	case n < 10<<30:
		return digits(float64(n)/(1<<20), "MiB")
	}
	return digits(float64(n)/(1<<30), "GiB")
}
