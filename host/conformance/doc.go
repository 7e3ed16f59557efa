// Package conformance holds what two runs of the same cases did against each other, call by call: the embedded
// provider's trace and a real device's must be equal, but for what a file of known differences names.
package conformance
