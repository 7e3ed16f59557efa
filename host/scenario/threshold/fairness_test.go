package threshold

import (
	"math"
	"testing"

	"rdmarun/host/scenario/compile"
)

func TestCompared(t *testing.T) {
	for name, test := range map[string]struct {
		values           []float64
		fairness, spread float64
	}{
		"equal":               {[]float64{3, 3, 3}, 1, 1},
		"two to one":          {[]float64{4, 2}, 0.9, 2},
		"one has everything":  {[]float64{0, 0, 7, 0}, 0.25, math.Inf(1)},
		"nobody has anything": {[]float64{0, 0}, 0, math.Inf(1)},
		"very large":          {[]float64{1e18, 1e18}, 1, 1},
	} {
		fields := compared(test.values)
		if fields[compile.Fairness] != test.fairness || fields[compile.Spread] != test.spread {
			t.Errorf("%s: %v, want fairness %g, spread %g", name, fields, test.fairness, test.spread)
		}
	}
	if fields := compared([]float64{3}); len(fields) != 1 || fields[sampleCount] != 1 {
		t.Errorf("of one: %v", fields)
	}
	if fields := compared(nil); fields != nil {
		t.Errorf("of none: %v", fields)
	}
}
