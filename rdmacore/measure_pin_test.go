package rdmacore

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// threadsOn counts the threads of the process that may run on that CPU alone.
func threadsOn(t *testing.T, cpu int) int {
	files, err := filepath.Glob("/proc/self/task/*/status")
	must(t, err)
	count := 0
	for _, file := range files {
		status, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(status), "\nCpus_allowed_list:\t"+strconv.Itoa(cpu)+"\n") {
			count++
		}
	}
	return count
}

// TestMeasurePinned wants the threads of the ends on their CPUs, each on its own.
func TestMeasurePinned(t *testing.T) {
	var all unix.CPUSet
	must(t, unix.SchedGetaffinity(0, &all))
	var cpus []int
	for cpu := range 1024 {
		if all.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	if len(cpus) < 2 {
		t.Skip("this process may run on one CPU, and pinned threads look like any other")
	}
	first, last := cpus[0], cpus[len(cpus)-1]
	p := opened(t)
	ends := []MeasureEnd{{Role: MeasurePassive, Provider: p, Address: here(t, 0), CPUs: []int{first}},
		{Role: MeasureActive, Provider: p, Address: here(t, 0), CPUs: []int{last}}}
	before := [2]int{threadsOn(t, first), threadsOn(t, last)}
	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()
	done := make(chan error)
	go func() {
		_, err := runMeasurement(ctx, MeasureSpec{Kind: MeasureConnect, Duration: time.Hour}, ends...)
		done <- err
	}()
	for threadsOn(t, first) != before[0]+1 || threadsOn(t, last) != before[1]+1 {
		select {
		case err := <-done:
			t.Fatalf("the measurement has ended, and its threads were not seen: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	refused(t, <-done, context.Canceled)

	ends[0].CPUs = []int{1024}
	_, err := runMeasurement(bounded(t), MeasureSpec{Kind: MeasureConnect, Iterations: 1}, ends...)
	refused(t, err, syscall.EINVAL)
}
