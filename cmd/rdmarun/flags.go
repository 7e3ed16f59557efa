package main

import (
	"fmt"
	"strconv"
	"strings"
)

// byteSize is a flag of so many bytes: "65536", "64KiB", "32MiB", "1GiB".
type byteSize int64

var byteUnits = []struct {
	suffix string
	bytes  int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"", 1}}

func (s *byteSize) String() string {
	for at := len(byteUnits) - 2; at >= 0; at-- {
		if unit := byteUnits[at]; *s != 0 && int64(*s)%unit.bytes == 0 {
			return strconv.FormatInt(int64(*s)/unit.bytes, 10) + unit.suffix
		}
	}
	return strconv.FormatInt(int64(*s), 10)
}

func (*byteSize) Type() string { return "size" }

func (s *byteSize) Set(text string) error {
	for _, unit := range byteUnits {
		digits, ok := strings.CutSuffix(text, unit.suffix)
		if !ok {
			continue
		}
		number, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || number <= 0 || number > 1<<40/unit.bytes {
			break
		}
		*s = byteSize(number * unit.bytes)
		return nil
	}
	return fmt.Errorf("a size is a number of bytes, or one with KiB, MiB or GiB")
}

// sizesFlag is a flag of several sizes: "64,4KiB", or "64..1MiB", which is all powers of two of it.
type sizesFlag []byteSize

func (f *sizesFlag) String() string { return strings.Trim(f.list(), "[]") }

func (*sizesFlag) Type() string { return "sizes" }

// list is what the language writes.
func (f sizesFlag) list() string {
	words := make([]string, len(f))
	for i := range f {
		words[i] = f[i].String()
	}
	return "[" + strings.Join(words, ", ") + "]"
}

func (f *sizesFlag) Set(text string) error {
	*f = nil
	for word := range strings.SplitSeq(text, ",") {
		var from, to byteSize
		first, last, several := strings.Cut(strings.TrimSpace(word), "..")
		if err := from.Set(first); err != nil {
			return err
		}
		if !several {
			last = first
		}
		if err := to.Set(last); err != nil {
			return err
		}
		if several && (from > to || from&(from-1) != 0) {
			return fmt.Errorf("%s: from a power of two up, as in 64..1MiB", word)
		}
		for size := from; size <= to; size *= 2 {
			*f = append(*f, size)
		}
	}
	return nil
}
