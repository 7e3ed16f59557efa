// Package report has the outputs of a run: each reads records (package record) and knows nothing else of
// the run.
package report
