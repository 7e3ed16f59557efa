package html

import (
	"fmt"
	"strings"
	"time"

	"rdmarun/host/scenario/report"
)

// duration is the terminal's, in the characters that a page has: a narrow space that does not break, and µ.
func duration(d time.Duration) string {
	if d <= 0 {
		return "0"
	}
	return narrow(report.Duration(d))
}

func narrow(text string) string {
	return strings.NewReplacer(" us", "\u202fµs", " ", "\u202f").Replace(text)
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
