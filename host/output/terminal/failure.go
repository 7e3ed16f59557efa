package terminal

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/standard"
)

// FailureText is a failure in full, the same in every output that takes text.
func FailureText(f *record.Failure, style Style) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", style.Fold("  "+style.bad(headline(f)), 6))
	if len(f.Path) > 0 {
		fmt.Fprintf(&b, "     in %s\n", strings.Join(f.Path, " > "))
	}
	for _, user := range f.Used {
		fmt.Fprintf(&b, "     used by %s\n", user)
	}
	excerpt := f.Excerpt
	if style.Width > 0 {
		excerpt = narrow(excerpt, style.Width-2)
	}
	for i, line := range excerpt {
		if i > 0 {
			line = strings.Replace(line, "^", style.bad("^"), 1)
		}
		fmt.Fprintf(&b, "  %s\n", line)
	}
	note := func(word, text string) {
		if text == "" {
			return
		}
		lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
		fmt.Fprintf(
			&b, "%s\n", style.Fold(fmt.Sprintf("        = %s %s", style.dim(fmt.Sprintf("%-9s", word)), lines[0]), 20),
		)
		for _, line := range lines[1:] {
			fmt.Fprintf(&b, "%s\n", style.Fold("                    "+line, 20))
		}
	}
	note("expected", f.Expected)
	note("got", f.Got)
	note("hint", f.Hint)
	for _, detail := range f.Details {
		note("-", detail)
	}
	timeline(&b, f, style)
	if f.Rerun != "" {
		fmt.Fprintf(&b, "     %s %s\n", style.dim("rerun:"), f.Rerun)
	}
	return b.String()
}

// headline is a failure in one line.
func headline(f *record.Failure) string {
	var who []string
	if f.Role != "" {
		who = append(who, f.Role)
	}
	if f.Action != "" {
		who = append(who, f.Action)
	}
	text := f.What
	if len(who) > 0 {
		text = strings.Join(who, " ") + ": " + text
	}
	if f.Host != "" {
		text = "host " + f.Host + ": " + text
	}
	if f.Line == 0 {
		return text
	}
	return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, text)
}

// timeline shows what each role did last.
func timeline(b *strings.Builder, f *record.Failure, style Style) {
	if len(f.Timeline) == 0 {
		return
	}
	heading := "timeline (the last steps of each role)"
	if f.Timeline[0].Clock != nil {
		heading = "timeline (the last steps of each role, on the virtual clock)"
	}
	fmt.Fprintf(b, "     %s\n", style.dim(heading))
	widest := 0
	for _, moment := range f.Timeline {
		widest = max(widest, len(moment.Role))
	}
	for _, moment := range f.Timeline {
		file := moment.File
		if !standard.Is(file) {
			file = filepath.Base(file)
		}
		at := fmt.Sprintf("%s:%d", file, moment.Line)
		line := fmt.Sprintf("        %s  %s  %s  %s", style.dim(seconds(moment.OnClock())),
			style.role(fmt.Sprintf("%-*s", widest, moment.Role)), moment.Text, style.dim(at))
		fmt.Fprintf(b, "%s\n", style.Fold(line, 8+10+2+widest+2+2))
	}
}

// seconds prints a time since the case began with microseconds in groups of three.
func seconds(d time.Duration) string {
	us := d.Microseconds()
	return fmt.Sprintf("+%d.%03d %03d", us/1e6, us/1e3%1e3, us%1e3)
}
