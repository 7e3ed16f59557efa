// Package guest runs WebAssembly guests: it compiles them (with a cache on disk), gives each its memory,
// its limits and the ABI of hostfuncs, stops those that do not end by themselves, and frees what they
// leave behind.
//
// # Memory
//
// A guest's linear memory is one reservation whose base never moves, so a range of it is a memory region
// as it is.  The reservation is reference counted: the guest holds it, and so does each memory region.
// It is unmapped when the last one lets go, never by closing a module: compiled code that ran on after
// that would take the process down.
//
// # The end of a guest
//
// Whether a guest returns, exits, traps, exceeds its limits or is stopped, the order is the same: its last
// instruction, then its RDMA objects (children before parents; peers get DISCONNECTED), then its module,
// then the last reference to its memory.
//
// # Interruption
//
// wazero's compiled code is not preemptible.  Modules are therefore rewritten when they are loaded, to
// leave compiled code each 65536 steps (package host/guest/wasm).  That is where the scheduler and the garbage
// collector get their turn, and where a guest that has to end does.  It costs 0 to 5 % of what guests
// usually do.
package guest
