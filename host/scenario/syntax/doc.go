// Package syntax turns the bytes of a scenario into a tree of nodes with positions.
//
// It is the only package that imports a YAML library.  The library's own error positions are not to
// be trusted (an unclosed "[" is reported on line 1, "a: b: c" without any line), so syntax finds
// the place itself.  It also looks for what the library lets pass: duplicate keys, several documents,
// tags, and aliases that expand without end.
package syntax
