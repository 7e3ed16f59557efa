// Package threshold compares what a case has measured with the limits of its file.
//
// A threshold chooses samples of a metric: measurements by their labels, named loops, counters, or the time of the
// case.  Each of its limits is an expression on a field of a sample, which may mention the same field of an earlier run
// (baseline).  Checking a limit gives a Result.  Exceeding one limit fails the case, and so does a limit without
// samples: it would watch nothing.
//
//   - threshold.go checks limits, and reads the results of another process.
//   - sample.go makes samples of measurements, fairness.go those that compare samples with each other.
//
// The package does not know steps and processes: package exec gives it values, and decides which process checks.
package threshold
