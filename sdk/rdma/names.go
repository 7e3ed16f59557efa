package rdma

import (
	"strconv"
	"strings"
)

type flagName struct {
	bit  uint32
	name string
}

// flagNames joins the names of the bits that are set; bits without a name follow in hexadecimal.
func flagNames(v uint32, names []flagName) string {
	if v == 0 {
		return "0"
	}
	var parts []string
	for _, each := range names {
		if v&each.bit != 0 {
			parts = append(parts, each.name)
			v &^= each.bit
		}
	}
	if v != 0 {
		parts = append(parts, "0x"+strconv.FormatUint(uint64(v), 16))
	}
	return strings.Join(parts, "|")
}

func unnamed(kind string, v uint32) string {
	return kind + "(" + strconv.FormatUint(uint64(v), 10) + ")"
}

// Error makes an Errno an error, so that errors.Is(err, rdma.EINVAL) works.
func (v Errno) Error() string { return v.String() }
