package wasm

// Maximum numbers of things in a module. A few bytes of it become large objects of the compiler and of an instance, so
// a limit on the file's size is not enough. Two bytes can declare 2^32 local variables. Programs with a whole language
// runtime stay at a tenth of these; browsers have limits of the same order.
const (
	maxItems    = 1 << 17 // types, imports, functions, globals, exports, segments: of each
	maxTables   = 100
	maxTable    = 1 << 27 // elements that a table begins with, as in wazero
	maxElements = 1 << 20 // of all segments for tables
	maxValues   = 1000    // parameters of a function, or results
	maxLocals   = 50_000  // of a function
	allLocals   = 1 << 22 // of all functions
	maxBody     = 1 << 20 // bytes of a function
	maxNesting  = 1 << 15 // blocks in blocks
	maxOperands = 1 << 16 // values on the stack of a function
	maxLabels   = 1 << 16 // targets of a br_table
)

// The host's memory for a thing of an instance, in bytes, in wazero.
const (
	functionSize = 16
	globalSize   = 96
	segmentSize  = 32
	elementSize  = 8 // as long as no table has grown
)

// Limit is how many of something a module may have.
type Limit struct {
	What string
	Most int
}

// Limits are those of modules, for people.
func Limits() []Limit {
	return []Limit{
		{"types, imports, functions, globals, exports, segments, of each", maxItems},
		{"tables", maxTables},
		{"elements that a table begins with", maxTable},
		{"elements that segments have for tables", maxElements},
		{"parameters or results of a function", maxValues},
		{"local variables of a function", maxLocals},
		{"local variables of all functions", allLocals},
		{"bytes of a function", maxBody},
		{"blocks in blocks", maxNesting},
		{"values on the stack of a function", maxOperands},
		{"targets of a br_table", maxLabels},
	}
}
