// Package compare holds two runs against each other: which cases are new or gone, which ended otherwise,
// and what became faster or slower, where there are enough samples to say so.
package compare
