// Package bounded reads files that a user names, whatever they turn out to be: endless devices, pipes that
// nobody writes to, files of any size.  It takes a bounded time and a bounded amount of memory.
package bounded
