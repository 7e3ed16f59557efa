package testbed

import (
	"errors"
	"fmt"
	"syscall"
)

// Failure is an expectation that did not hold: what a test is for.  Everything else that goes wrong (no
// device, a bug) is another kind of error.
type Failure struct {
	What     string // in a few words: "wrong event", "no completion"
	Expected string
	Got      string
	Hint     string // likely causes, or what to look at; may be empty
	// Errno is what a call would be answered with that has lost its object; 0 for other failures.
	Errno syscall.Errno
	// Absent tells that what was waited for did not come, which `expect: {none: true}` wants.
	Absent bool
}

// Unwrap is the errno, if there is one.
func (f *Failure) Unwrap() error {
	if f.Errno == 0 {
		return nil
	}
	return f.Errno
}

func (f *Failure) Error() string {
	switch {
	case f.Expected == "" && f.Got == "":
		return f.What
	case f.Expected == "":
		return fmt.Sprintf("%s: got %s", f.What, f.Got)
	}
	return fmt.Sprintf("%s: expected %s, got %s", f.What, f.Expected, f.Got)
}

// EnvironmentError is a fault of the surroundings: no provider, no device, a file that is gone.
type EnvironmentError struct {
	What string
	Err  error
}

func (e *EnvironmentError) Error() string { return e.What + ": " + e.Err.Error() }
func (e *EnvironmentError) Unwrap() error { return e.Err }

// Hint is what can be done about it, empty when nobody knows.
func (e *EnvironmentError) Hint() string {
	if OutOfFiles(e.Err) {
		return "raise the limit of file descriptors: ulimit -n 4096; each connection takes some, and each guest"
	}
	return ""
}

// OutOfFiles tells whether the process, or the system, has no descriptor left: a fault of the surroundings, whatever
// was to be found out.  What a guest may have is counted elsewhere.
func OutOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
