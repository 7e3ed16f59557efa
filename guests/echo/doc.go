//go:build wasip1

// Command echo is a guest of rdmarun: a server that sends every message back, to one client after another, until each
// disconnects. On request it traps, so that a test can see what a guest's death looks like to its peer.
//
//	rdmarun guest run echo.wasm -- --port 7480 --clients 4
//
// It comes to the barrier "listening" once it listens.
package main
