package trace

import (
	"syscall"
	"time"
)

// Call is a call of a program, as it is shown.
type Call struct {
	Process, Thread int
	Name, Group     string
	// Start and End count from the beginning of the trace.
	Start, End time.Duration
	// Arguments are what the call got, Results what it has written, or made.
	Arguments, Results []Field
	// Result is what the call returned: an int64, a Word or nil for nothing.
	Result any
	// Errno is why it failed; 0: it has not.
	Errno syscall.Errno
	// Unfinished is set for a call that had not returned when its process, or the trace, ended.
	Unfinished bool
	// Program is the name of the program of the process (comm of proc_pid_comm(5)); "" if it is not known.
	Program string
	// Killed is set for the exit of a process that has not called exit(3) or _exit(2): a signal has ended it.
	Killed bool
	// Nested is set for a call that one of the libraries made within another.
	Nested bool
	// InHandler is set for a call that a signal handler made. It is known with Options.Memory alone.
	InHandler bool
	// Polls are the empty polls before this one, or, with the result 0, all that this line is about.
	Polls uint64
	// Queue is the queue that a post or a poll is about. Posted are the requests of a post, of which the first Taken
	// were accepted, and Polled the completions of a poll, with Options.Numbers alone.
	Queue  string
	Posted []Request
	Taken  int
	Polled []Completion
	// Messages and Bytes are what was posted, or has completed.
	Messages, Bytes uint64
	// Failures are completions with another status than SUCCESS.
	Failures uint64
	// Site is where the program made the call.
	Site Site
	// Note is set for what is no call: records that are missing, or what is not seen.
	Note string
	// Lost is how many calls are missing at a note.
	Lost uint64
}

// Duration is how long the call took.
func (c *Call) Duration() time.Duration { return c.End - c.Start }

// Failed reports whether the call has failed.
func (c *Call) Failed() bool { return c.Errno != 0 }

// Field is a value with its name; "" where the value says what it is.
type Field struct {
	Name  string
	Value any
}

// Values of a Field are int64, uint64, bool, nil for NULL, and these.
type (
	// Word is shown as it is: a name, flags, an object, an address.
	Word string
	// Text is shown in quotes: a string of the program.
	Text string
	// Bytes are shown as a string with escapes.
	Bytes struct {
		Data []byte
		// Length is that of all of them.
		Length uint64
	}
	// hex is shown in hexadecimal.
	hex uint64
	// explained is a name with what it means.
	explained struct{ Name, Meaning string }
	// Struct is shown in braces, List in brackets.
	Struct []Field
	List   []any
)

// Number is the number of a Field's value; false if it is none.
func Number(value any) (uint64, bool) {
	switch v := value.(type) {
	case int64:
		return uint64(v), true
	case uint64:
		return v, true
	case hex:
		return uint64(v), true
	}
	return 0, false
}

// Name is the text of a Word, and that of a status without its meaning; "" for other values.
func Name(value any) string {
	switch v := value.(type) {
	case Word:
		return string(v)
	case explained:
		return v.Name
	}
	return ""
}

// more stands for members of a List that were not recorded.
type more uint64
