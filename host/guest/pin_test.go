package guest

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestPin wants that a pinned goroutine's thread is on its CPU, and that others are not.
func TestPin(t *testing.T) {
	var all, pinned, after unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	last := -1
	for cpu := range 1024 {
		if all.IsSet(cpu) {
			last = cpu
		}
	}
	done := make(chan error)
	go func() {
		err := pin([]int{last})
		if err == nil {
			err = unix.SchedGetaffinity(0, &pinned)
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if pinned.Count() != 1 || !pinned.IsSet(last) {
		t.Errorf("%d CPUs, CPU %d among them: %v", pinned.Count(), last, pinned.IsSet(last))
	}
	if err := unix.SchedGetaffinity(0, &after); err != nil || after != all {
		t.Errorf("the test's thread: %d CPUs of %d, %v", after.Count(), all.Count(), err)
	}
	go func() { done <- pin([]int{1023}) }()
	if err := <-done; err == nil && !all.IsSet(1023) {
		t.Error("a CPU that is not there")
	}
}
