// Package process does what rdmarun needs before and below Go. It reports limits that are too low before Go's runtime
// would fail because of them. After a crash of native code it prints a message, and the reports are completed.
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

// Environment is the code that the command after a crash gets when the process could have no more threads.
const Environment = "environment"

// maxArguments is how much of a command line a report shows: a system takes no argument of any length.
const maxArguments = 16 << 10

// CatchCrashes reports a crash of native code, and ends the process with the exit code of a bug.  The process becomes
// "rdmarun command CODE REPORT PLAN ARGUMENTS" then, with the plan of Plan and the arguments of this process as one.
// Faults of Go's code stay the runtime's.
func CatchCrashes(command string) error {
	begin, end := goText()
	arguments := strings.Join(os.Args[1:], " ")
	arguments = arguments[:min(len(arguments), maxArguments)]
	// The strings are needed until the process ends.
	if result := C.crash_catch(
		C.CString(os.Args[0]), C.CString(command), C.CString(arguments), C.uintptr_t(begin), C.uintptr_t(end),
	); result < 0 {
		return fmt.Errorf("catch crashes: %w", syscall.Errno(-result))
	}
	return nil
}

// MaxFiles is how many files stay open over a crash.
const MaxFiles = C.PROCESS_FILES

// Plan sets what a crash passes on from now, and which files stay open then, the first MaxFiles.  It is called
// once in a process; the files are not to be closed before NoPlan.
func Plan(plan string, files ...*os.File) {
	var descriptors [MaxFiles]C.int
	count := min(len(files), MaxFiles)
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
