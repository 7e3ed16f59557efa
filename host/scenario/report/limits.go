package report

import (
	"fmt"

	"rdmarun/host/scenario/record"
)

// limitText is a threshold with what was found, in one line.
func limitText(t *record.Threshold) string {
	switch {
	case t.Reason != "":
		return t.Text + ": " + t.Reason
	case t.Value != "":
		return t.Text + ": " + t.Value
	}
	return t.Text
}

// limit shows a threshold below its case.
func (h *Human) limit(t *record.Threshold) {
	if t.OK {
		h.print("      %s\n", h.style.dim("threshold held: "+limitText(t)))
		return
	}
	h.print("      %s\n", h.style.bad("threshold not held: "+limitText(t)))
}

// thresholds lists those that did not hold, at the end: the cases themselves have passed.
func (h *Human) thresholds() {
	if len(h.unmet) == 0 {
		return
	}
	h.print("\n%s\n", h.style.bad("thresholds not held"))
	for i := range h.unmet {
		each := &h.unmet[i]
		h.print("  %s\n    %s\n", h.style.strong(each.id), fmt.Sprintf("%s:%d:%d: %s", each.file, each.Line, each.Column, limitText(&each.Threshold)))
	}
}
