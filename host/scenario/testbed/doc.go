// Package testbed is what a case runs on: its roles with their buffers, endpoints and guests, on one
// provider, and the freeing of all of it.
//
// Everything a lab makes goes onto one stack and is freed in reverse order by Close, whatever failed in
// between.  A lab belongs to the goroutine that runs the case; only guests and the barriers they
// call have goroutines of their own.
package testbed
