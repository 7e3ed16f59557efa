//go:build !asan

package sandbox

// sanitized means that LeakSanitizer looks at the process by ptrace when it ends.
const sanitized = false
