// Package diag holds what a checker says about a file: a position, a stable code, a sentence, a hint,
// and how all of that looks on a terminal.
//
// Every message has file:line:column, because the reader's next act is to go there.
package diag
