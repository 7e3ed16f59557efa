package rdmacore

// #include "measure/measure.h"
import "C"

import "time"

// SoFar is what a measurement that Run runs, in another goroutine, has done in the timed part until now: the
// messages, bytes and times of the ends, and histograms.  Before the timed part they are empty.  The
// measurement must not be closed meanwhile.
func (m *Measurement) SoFar() *MeasureResult {
	r := &MeasureResult{Spec: m.spec, Histograms: make(map[MeasureStep]*Histogram)}
	for i, end := range m.ends {
		var c C.struct_core_measure_result
		C.core_measure_peek(m.c, C.uint32_t(i), &c)
		r.Ends = append(r.Ends, MeasureEndResult{
			Role: end.Role, Messages: uint64(c.messages), Bytes: uint64(c.bytes),
			Begin: time.Duration(c.begin_ns), Elapsed: time.Duration(c.elapsed_ns),
		})
		for _, row := range measureStepNames.rows {
			living := C.core_measure_histogram(m.c, C.uint32_t(i), C.uint32_t(row.value))
			if living == nil {
				continue
			}
			var copied C.struct_core_histogram
			if C.core_histogram_copy(&copied, living) == 0 {
				r.Histograms[row.value] = fromCHistogram(&copied)
				C.core_histogram_free(&copied)
			}
		}
	}
	return r
}
