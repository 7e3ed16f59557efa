package cases

import (
	"fmt"
	"strings"
	"time"

	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
)

// FailureText is all that went wrong in a case, as the terminal shows it.
func (c *Case) FailureText() string {
	var b strings.Builder
	for i := range c.Result.Failures {
		b.WriteString(terminal.FailureText(&c.Result.Failures[i], terminal.Style{}))
	}
	return b.String()
}

// Transcript is what a case did and printed, a line each.
func (c *Case) Transcript() string {
	var b strings.Builder
	for _, step := range c.Steps.Head() {
		b.WriteString(StepText(c.File, &step))
	}
	if n := c.Steps.Dropped(); n > 0 {
		fmt.Fprintf(&b, "... %d more steps ...\n", n)
	}
	for _, step := range c.Steps.Last() {
		b.WriteString(StepText(c.File, &step))
	}
	for _, line := range c.Lines.All() {
		fmt.Fprintf(&b, "%s | %s\n", line.Role, line.Text)
	}
	return b.String()
}

// StepText is a step of a file in one line, with its end.
func StepText(file string, step *record.Step) string {
	text := strings.TrimSpace(step.Action + " " + step.Text)
	if step.Outcome != "" {
		text += "  -> " + step.Outcome
	}
	if step.File != "" {
		file = step.File
	}
	return fmt.Sprintf("+%.6f  %-8s  %s  (%s:%d)\n", step.OnClock().At.Seconds(), step.Role, text, file, step.Line)
}

// Seconds prints a time as JUnit and TAP want it.
func Seconds(d time.Duration) string { return fmt.Sprintf("%.6f", d.Seconds()) }
