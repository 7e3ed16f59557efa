package terminal

import "rdmarun/host/record"

// limit shows a threshold below its case.
func (h *Human) limit(t *record.Threshold) {
	if t.OK {
		h.fold(8, "      %s", h.style.dim("threshold held: "+t.String()))
		return
	}
	h.fold(8, "      %s", h.style.bad("threshold not held: "+t.String()))
}
