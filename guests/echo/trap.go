//go:build wasip1

package main

// trap executes the instruction unreachable: no panic, which Go would end with exit code 2, but a trap of WebAssembly.
func trap()
