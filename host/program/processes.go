package program

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"rdmarun/host/printable"
)

// maxProcesses bounds how many processes of a program are looked at.
const maxProcesses = 1 << 16

// descendants are the processes that a process started, and those that these started, each before what it started
// (/proc/PID/task/TID/children of proc(5)).
func descendants(pid int) []int {
	var all []int
	for next := []int{pid}; len(next) > 0 && len(all) < maxProcesses; {
		children := childrenOf(next[0])
		all = append(all, children...)
		next = append(next[1:], children...)
	}
	return all
}

func childrenOf(pid int) []int {
	var children []int
	// Each thread has those that it started.
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread ended
		}
		for _, word := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

// isRunning reports whether a process exists and is not a zombie.
func isRunning(pid int) bool {
	state, _ := statusOf(pid)
	return state != "" && state != "Z" && state != "X"
}

// descends reports whether a process was started by another one, or by what that started.  status is statusOf.
func descends(pid, from int, status func(pid int) (state string, parent int)) bool {
	const maxWalks, maxSteps = 64, 4096
	for range maxWalks {
		at, steps := pid, 0
		for ; at > 1 && at != from && steps < maxSteps; steps++ {
			state, parent := status(at)
			if state == "" {
				break
			}
			at = parent
		}
		switch {
		case at == from:
			return true
		case at <= 1, at == pid, steps == maxSteps:
			return false
		}
		// A process on the way ended during the walk, and what it started has another parent by now.
	}
	return false
}

// statusOf is the state of a process and its parent; "" and 0: there is no such process.
func statusOf(pid int) (state string, parent int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0
	}
	// Its name may have blanks and parentheses.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 2 {
		return "", 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return fields[0], parent
}

// describe names a process: "sleep (pid 12)".
func describe(pid int) string {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return fmt.Sprintf("pid %d", pid)
	}
	return fmt.Sprintf("%s (pid %d)", printable.Brief(strings.TrimSpace(string(name)), 64), pid)
}

// signalTo sends a signal to the process group of a child that was not reaped, and to the child alone when it left that
// group.
func signalTo(child int, signal unix.Signal) error {
	err := unix.Kill(-child, signal)
	if err == unix.ESRCH {
		err = unix.Kill(child, signal)
	}
	return err
}
