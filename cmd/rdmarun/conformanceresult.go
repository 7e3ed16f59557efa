package main

import (
	"bufio"
	"fmt"
	"io"

	"rdmarun/host/conformance"
)

// showConformance prints what is not equal, and the counts.  What differs is printed as an entry of the file
// of known differences, ready to be explained there.
func showConformance(out io.Writer, result *conformance.Result) error {
	w := bufio.NewWriter(out)
	for i := range result.Cases {
		one := &result.Cases[i]
		switch one.Verdict {
		case conformance.Expected:
			fmt.Fprintf(w, "known      %s\n           %s\n", one.Case, one.Reason)
		case conformance.OneSided:
			fmt.Fprintf(w, "one-sided  %s\n           %s\n", one.Case, one.Reason)
		case conformance.Different:
			fmt.Fprintf(w, "DIFFERENT\n- case: %q\n  reason: ?\n  differences:\n", one.Case)
			for _, difference := range one.Differences {
				fmt.Fprintf(w, "    - %q\n", difference)
			}
		}
	}
	for _, stale := range result.Stale {
		fmt.Fprintf(w, "STALE      %s\n", stale)
	}
	fmt.Fprintf(w, "%d equal, %d known, %d different, %d one-sided, %d not run (%s and %s)\n",
		result.Count(conformance.Equal), result.Count(conformance.Expected), result.Count(conformance.Different),
		result.Count(conformance.OneSided), result.Count(conformance.NotRun), result.Runs[0], result.Runs[1])
	return w.Flush()
}
