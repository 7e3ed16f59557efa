// Package outfile writes the files of reports: whole or not at all.
package outfile
