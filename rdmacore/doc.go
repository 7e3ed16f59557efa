// Package rdmacore is the native core of rdmarun seen from Go: librdmacm and libibverbs, on an
// embedded software provider ("soft") or on the system's libraries and devices ("verbs").  Names,
// values and semantics are those of the man pages (rdma_cm(7), rdma_create_ep(3), ibv_post_send(3)
// and so on), and every error names the function it came from.
//
// It is the only package that uses cgo, and no C type leaves it.
//
// # Lifetimes
//
// Objects are freed by their own Destroy, Dealloc, Dereg or Close, never by the garbage collector, and
// children go before parents: completion queues after the queue pairs that use them, memory regions
// before their protection domain, ids before their event channel, everything before its provider.  A
// parent with children answers EBUSY.  A method of an object that is gone (or nil) answers EBADF.  An
// object's methods may be called from any goroutine, except at the same time as its own Destroy.
//
// Memory is reference counted: each MR holds it, so it is unmapped only when the last MR is gone.
//
// # Waiting
//
// Nothing blocks in C.  Event waits sleep in the Go runtime's poller on the descriptor of the event or
// completion channel, completion waits poll in bounded slices, and both end when their context does.
package rdmacore
