package html

import (
	"fmt"
	"strings"
	"time"

	"rdmarun/host/output/terminal"
)

// duration is the terminal's.
func duration(d time.Duration) string { return narrow(terminal.Duration(d)) }

// narrow is a number with its unit as the terminal has it, with a space that does not break.
func narrow(text string) string { return strings.ReplaceAll(text, " ", "\u202f") }

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
