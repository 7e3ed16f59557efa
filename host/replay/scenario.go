package replay

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"rdmarun/host/printable"
)

// ErrNothing means that no call was recorded.
var ErrNothing = errors.New("no call was recorded: the program has made none that a scenario can have")

// Write writes the scenario.  command is what was recorded.
func (r *Recorder) Write(out io.Writer, name string, command []string) error {
	if len(r.steps) == 0 {
		return ErrNothing
	}
	r.name()
	r.match()
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "# Recorded by rdmarun of: %s\n", printable.Line(strings.Join(command, " ")))
	fmt.Fprintf(w, "rdmarun: v1\nname: %q\nroles:\n", name)
	for _, p := range r.processes {
		p.role(w)
	}
	fmt.Fprintf(w, "steps:\n")
	writeSteps(w, r.ordered(), r.Pauses)
	return w.Flush()
}

// writeSteps writes steps; the same step several times is one with repeat. A time of at least pauses in which no
// process was in a call is a step, unless pauses is 0.
func writeSteps(w io.Writer, steps []step, pauses time.Duration) {
	var role *process
	text, count := "", 0
	var idle time.Duration // since when no process is in a call
	write := func() {
		switch {
		case count == 1:
			fmt.Fprintf(w, "  - {role: %s, %s}\n", role.name, text)
		case count > 1:
			fmt.Fprintf(w, "  - {role: %s, repeat: %d, %s}\n", role.name, count, text)
		}
	}
	for i, each := range steps {
		next := each.text()
		if next == "" {
			continue
		}
		if pause := each.begin - idle; i > 0 && pauses > 0 && pause >= pauses {
			write()
			count = 0
			fmt.Fprintf(w, "  - {sleep: %s}\n", pause.Round(100*time.Microsecond))
		}
		idle = max(idle, each.end)
		if each.role != role || next != text {
			write()
			role, text, count = each.role, next, 0
		}
		count++
	}
	write()
}

// role writes the role of a process with its buffers.
func (p *process) role(w io.Writer) {
	program := ""
	if p.program != "" {
		program = " # " + p.program
	}
	if len(p.regions) == 0 && p.inline == 0 {
		fmt.Fprintf(w, "  %s: {}%s\n", p.name, program)
		return
	}
	fmt.Fprintf(w, "  %s:%s\n    buffers:\n", p.name, program)
	for _, each := range p.regions {
		fmt.Fprintf(w, "      %s: {size: %d, access: [%s]}\n", each.name, each.length, rights(each.access))
	}
	if p.inline > 0 {
		fmt.Fprintf(w, "      inline: {size: %d}\n", p.inline)
	}
}

// Missing are sentences about what the scenario does not have.
func (r *Recorder) Missing() (sentences []string) {
	for _, reason := range slices.Sorted(maps.Keys(r.missing)) {
		sentences = append(sentences, fmt.Sprintf("not in the scenario: %s (%d times)", reason, r.missing[reason]))
	}
	if r.dropped > 0 {
		sentences = append(
			sentences, fmt.Sprintf("not in the scenario: %d calls after the first %d steps", r.dropped, maxSteps),
		)
	}
	return sentences
}
