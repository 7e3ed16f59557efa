package guest

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// pin keeps the goroutine on a thread of its own, and that on some CPUs; with none it does nothing.  The thread ends
// with the goroutine, which never unlocks it: no other goroutine may find itself on it.
func pin(cpus []int) error {
	if len(cpus) == 0 {
		return nil
	}
	runtime.LockOSThread()
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("sched_setaffinity to CPUs %v: %w", cpus, err)
	}
	return nil
}
