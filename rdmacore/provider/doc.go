// Package provider is the ground that both sides of the provider table stand on: the table itself, with every
// function of librdmacm and libibverbs that rdmarun uses under its own name and prototype, the address handles that
// both providers keep, and addresses in flat form. It holds no policy: who calls is in core and measure, who
// answers in soft and verbs.
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
