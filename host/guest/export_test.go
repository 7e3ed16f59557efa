package guest

// RustNames are those of a stack.
var RustNames = rustNames
