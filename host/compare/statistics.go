package compare

import (
	"math"
	"slices"
)

// median is 0 without values.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// exactMost is the size of both samples together up to which the distribution of U is exact. Beyond it, and with equal
// values, the normal approximation is good enough.
const exactMost = 40

// mannWhitney is the two-sided P of the Mann-Whitney U test (Mann and Whitney 1947). It is the probability that two
// samples of one distribution are as far apart as these.
func mannWhitney(a, b []float64) float64 {
	u, ties := statistic(a, b)
	n, m := len(a), len(b)
	if len(ties) == 0 && n+m <= exactMost {
		return exact(int(math.Min(u, float64(n*m)-u)), n, m)
	}
	total := float64(n + m)
	correction := 0.0
	for _, t := range ties {
		correction += t*t*t - t
	}
	variance := float64(n*m) / 12 * (total + 1 - correction/(total*(total-1)))
	if variance <= 0 {
		return 1 // all values are equal
	}
	// Half a step of continuity.
	z := math.Max(math.Abs(u-float64(n*m)/2)-0.5, 0) / math.Sqrt(variance)
	return math.Erfc(z / math.Sqrt2)
}

// statistic is U of a, and how many share a value, for each value that is shared.
func statistic(a, b []float64) (u float64, ties []float64) {
	for _, x := range a {
		for _, y := range b {
			switch {
			case x > y:
				u++
			case x == y:
				u += 0.5
			}
		}
	}
	all := slices.Sorted(slices.Values(slices.Concat(a, b)))
	for i := 0; i < len(all); {
		next := i
		for next < len(all) && all[next] == all[i] {
			next++
		}
		if next-i > 1 {
			ties = append(ties, float64(next-i))
		}
		i = next
	}
	return u, ties
}

// exact is the probability of a U of at most u or at least n*m-u. The numbers of arrangements with a given U are the
// coefficients of a Gaussian binomial. Each of the n values adds how many of the m it exceeds.
func exact(u, n, m int) float64 {
	// counts[j][k]: arrangements of i values of a and j of b with U = k, i growing.
	counts := make([][]float64, m+1)
	for j := range counts {
		counts[j] = make([]float64, n*m+1)
		counts[j][0] = 1
	}
	for range n {
		for j := 1; j <= m; j++ {
			// The largest value is of a, and exceeds j of b; or it is of b.
			next := make([]float64, n*m+1)
			for k := range next {
				next[k] = counts[j-1][k]
				if k >= j {
					next[k] += counts[j][k-j]
				}
			}
			counts[j] = next
		}
	}
	sum, total := 0.0, 0.0
	for k, count := range counts[m] {
		total += count
		if k <= u {
			sum += count
		}
	}
	return math.Min(1, 2*sum/total)
}
