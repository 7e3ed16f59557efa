// Package rdmacore is the native core of rdmarun seen from Go: librdmacm and libibverbs. They run on an embedded
// software provider ("soft") or on the system's libraries and devices ("verbs"). Names, values and semantics are those
// of the man pages (rdma_cm(7), rdma_create_ep(3), ibv_post_send(3) and so on). Every error names the function that
// returned it.
//
// It is the only package that uses cgo, and no C type leaves it.
//
// # Lifetimes
//
// Objects are freed by their own Destroy, Dealloc, Dereg or Close, never by the garbage collector. Destroy children
// before parents. A queue pair is a child of its completion queues, a memory region of its protection domain, and an
// id of its event channel. All are children of their provider. A parent with children returns EBUSY. A method of an
// object that is destroyed (or nil) returns EBADF. An object's methods may be called from any goroutine, except at the
// same time as its own Destroy.
//
// Memory is reference counted: each MR holds it, so it is unmapped only when the last MR is gone.
//
// # Waiting
//
// Nothing blocks in C. Event waits sleep in the Go runtime's poller on the descriptor of the event or completion
// channel. Completion waits poll in bounded slices. Both end when their context does.
package rdmacore
