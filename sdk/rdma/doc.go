// Package rdma is for guests of rdmarun written in Go: librdmacm and libibverbs as a WebAssembly module
// sees them.  Names and semantics are those of the man pages (rdma_cm(7), ibv_post_send(3)).
//
//	GOOS=wasip1 GOARCH=wasm go build -o guest.wasm . && rdmarun guest run guest.wasm
//
// # Memory
//
// RegMR registers a slice of the guest's own memory: no copy is ever made, and what the peer writes appears
// in the slice.  NewBuffer allocates such a slice.  The package keeps the memory of a region from the garbage
// collector until Dereg, also when only the host or a peer knows its address.  Read a word that the peer writes
// while you spin on it by sync/atomic.
//
// # Waiting
//
// A guest has one thread.  The functions that wait (WaitEvent, CQ.Wait, Barrier, Dial) stop all its
// goroutines meanwhile.
//
// # Errors
//
// An *Error has Linux's error number (EINVAL and so on are constants here) and the host's sentence.  When
// the run asks the guest to end, the wait in progress, or the next one, fails once with ECANCELED.
package rdma
