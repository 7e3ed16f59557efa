// Package record is the stream of what happens in a run.  The runner writes records; every output, on a
// terminal or in a file, only reads them, so that all outputs tell the same story.
package record
