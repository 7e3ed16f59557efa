//go:build !amd64 || asan || msan

package ccall

import "unsafe"

// available reports whether there are such calls on this processor, and no sanitizer that knows the stacks.
const available = false

func call(uintptr, unsafe.Pointer, uintptr) { panic("ccall: not on this processor") }
