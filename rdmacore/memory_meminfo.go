package rdmacore

import (
	"strconv"
	"strings"
	"syscall"
)

// hugePagesIn reads the text of /proc/meminfo.  Pages that are reserved are promised to others already.
func hugePagesIn(meminfo string) (HugePageCount, error) {
	numbers := make(map[string]int)
	for line := range strings.Lines(meminfo) {
		name, rest, _ := strings.Cut(line, ":")
		words := strings.Fields(rest)
		if len(words) == 0 {
			continue
		}
		if n, err := strconv.Atoi(words[0]); err == nil {
			numbers[name] = n
		}
	}
	count := HugePageCount{Size: numbers["Hugepagesize"] << 10, Free: numbers["HugePages_Free"] - numbers["HugePages_Rsvd"]}
	if count.Size == 0 {
		return count, fail("mmap", syscall.ENOSYS, "the kernel has no huge pages")
	}
	return count, nil
}
