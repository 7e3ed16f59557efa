// Package pack writes and reads archives of scenarios with everything they need: one file that runs the same on
// another machine.  An archive is a gzip-compressed tar whose first entry, manifest.json, has the hash of
// every other.
package pack
