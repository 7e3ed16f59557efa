// Package provider is what both sides of the provider table share. The table itself has each function of librdmacm and
// libibverbs that rdmarun uses, under its own name and prototype. Also shared are address handles by number, and flat
// addresses. It has no policy: core and measure call the table, soft and verbs implement it.
//
// # Files
//
// From the top; each calls only those below it.
//
//   - provider: the table, and the options of opening a provider
//   - ah_table: address handles by number
//   - address: flat addresses
//   - tally: what a provider has counted
//   - legal: legal behaviour that soft shows now and then
//   - control: messages between rdmarun and the library in a program
//   - newer: declarations of newer headers
package provider

// #cgo CFLAGS: -I${SRCDIR}/.. -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror
import "C"

import (
	"embed"
)

// What is embedded is part of what the build cache compares, so that a change of C is a change of the package.
//
//go:embed *.c *.h
var _ embed.FS
