// Package process is what rdmarun needs of its process before and below Go: limits that are too low are said
// before Go's runtime would fail of them, and a crash of native code is said and survived as far as reports go.
package process

// #cgo CFLAGS: -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror
// #cgo LDFLAGS: -lpthread
// #include "process.h"
import "C"

import (
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"
	"syscall"
)

// The codes that a crash passes on to the command that follows it.
const (
	// Bug is a crash.
	Bug = "bug"
	// Environment is the end of a process that could have no more threads.
	Environment = "environment"
)

// mostArguments is how much of a command line a report shows: a system takes no argument of any length.
const mostArguments = 16 << 10

// CatchCrashes reports a crash of native code, and ends the process with the exit code of a bug.  The process becomes
// "rdmarun command CODE REPORT PLAN ARGUMENTS" then, with the plan of Plan and the arguments of this process as one.
// Faults of Go's code stay the runtime's.
func CatchCrashes(command string) error {
	begin, end := goText()
	arguments := strings.Join(os.Args[1:], " ")
	arguments = arguments[:min(len(arguments), mostArguments)]
	// The strings are needed until the process ends.
	if result := C.crash_catch(
		C.CString(os.Args[0]), C.CString(command), C.CString(arguments), C.uintptr_t(begin), C.uintptr_t(end),
	); result < 0 {
		return fmt.Errorf("catch crashes: %w", syscall.Errno(-result))
	}
	return nil
}

// MostFiles is how many files stay open over a crash.
const MostFiles = C.PROCESS_FILES

// Plan tells a crash from now on what to pass on, and which files stay open then, the first MostFiles.  It is called
// once in a process; the files are not to be closed before NoPlan.
func Plan(plan string, files ...*os.File) {
	var descriptors [MostFiles]C.int
	count := min(len(files), MostFiles)
	for i, file := range files[:count] {
		descriptors[i] = C.int(file.Fd())
	}
	C.crash_plan(C.CString(plan), &descriptors[0], C.size_t(count))
}

// NoPlan ends what Plan began.
func NoPlan() { C.crash_plan(nil, nil, 0) }

// goText is where Go's own code lies, around which the linker puts that of C.  The runtime knows of each address which
// function it is of, and its code is in one piece.
func goText() (begin, end uintptr) {
	here := reflect.ValueOf(goText).Pointer()
	return border(here, -1), border(here, 1) + 1
}

// border is the last address in a direction that is Go's.
func border(here uintptr, direction int) uintptr {
	inside, distance := uintptr(0), uintptr(1)<<32
	for step := distance / 2; step > 0; step /= 2 {
		if runtime.FuncForPC(here+uintptr(direction)*(inside+step)) != nil {
			inside += step
		}
	}
	return here + uintptr(direction)*inside
}
