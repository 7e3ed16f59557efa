// Package wasm reads WebAssembly modules as far as the host must know them before the runtime does: what a
// module imports and exports, and where its loops are.  It puts a check into each loop and each function, so
// that a guest which spins can be stopped and does not stop the Go process meanwhile (meter.go).
package wasm
