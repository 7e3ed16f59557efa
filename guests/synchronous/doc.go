//go:build wasip1

// Command synchronous is a guest that connects to itself without waiting for events: what its calls start,
// Complete waits for, as the functions of librdmacm do without an event channel.  On the way it uses what
// other guests have no need of: options, migration, held events, names and multicast.
package main
