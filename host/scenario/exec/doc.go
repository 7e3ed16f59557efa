// Package exec executes programs: it makes a lab for each case, walks the steps, compares results with
// expectations, frees everything, and writes records of all of it.
package exec
