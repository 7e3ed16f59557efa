// Package explain is the one table from a status, an errno, an event or a reject reason to what it
// means and what usually causes it, so that a number never stands alone in a message.
package explain

import (
	"fmt"
	"strings"
	"syscall"

	"rdmarun/rdmacore"
)

// Entry is what is known of one status.
type Entry struct {
	Name    string
	Meaning string
	Causes  []string
}

// Text is the entry in one line.
func (e Entry) Text() string {
	if len(e.Causes) == 0 {
		return e.Meaning
	}
	return e.Meaning + "; causes seen: " + strings.Join(e.Causes, ", ")
}

func lookup(table []Entry, name string) string {
	for _, entry := range table {
		if entry.Name == name {
			return entry.Text()
		}
	}
	return ""
}

// Completion explains a work completion status by its name, "" when there is nothing to say.
func Completion(name string) string { return lookup(completions(), name) }

// Reject explains the positive status of a REJECTED event.
func Reject(status int) string {
	_, name, _ := strings.Cut(rdmacore.RejectReason(status), "(")
	return lookup(rejects(), strings.TrimSuffix(name, ")"))
}

// Errno explains an errno by its name.
func Errno(name string) string { return lookup(errnos(), name) }

// Event explains a CM event and its status.
func Event(name string, status int) string {
	meaning := lookup(events(), name)
	detail := ""
	switch {
	case name == "REJECTED" && status > 0:
		detail = Reject(status)
	case status < 0:
		detail = Errno(ErrnoName(syscall.Errno(-status)))
	}
	switch {
	case detail == "":
		return meaning
	case meaning == "":
		return detail
	}
	return fmt.Sprintf("%s.  Status: %s", meaning, detail)
}
