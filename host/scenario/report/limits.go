package report

import "rdmarun/host/scenario/record"

// limit shows a threshold below its case.
func (h *Human) limit(t *record.Threshold) {
	if t.OK {
		h.print("      %s\n", h.style.dim("threshold held: "+t.String()))
		return
	}
	h.print("      %s\n", h.style.bad("threshold not held: "+t.String()))
}
