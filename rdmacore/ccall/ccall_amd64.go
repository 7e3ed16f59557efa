//go:build amd64 && !asan && !msan

package ccall

import "unsafe"

// available reports whether there are such calls on this processor, and no sanitizer that knows the stacks.
const available = true

//go:noescape
func call(function uintptr, argument unsafe.Pointer, stack uintptr)
