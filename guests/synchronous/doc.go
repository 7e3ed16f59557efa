//go:build wasip1

// Command synchronous is a guest that connects to itself without waiting for events. Complete waits for what its calls
// start, as the functions of librdmacm do without an event channel. It also uses what other guests do not need:
// options, migration, held events, names and multicast.
package main
