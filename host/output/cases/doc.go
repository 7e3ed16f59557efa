// Package cases gathers the records of a case until it ends, for outputs that show a case as a whole.
package cases
