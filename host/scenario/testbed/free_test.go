package testbed

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"rdmarun/rdmacore"
)

// resource is a thing that cannot be freed as long as its users are there.
type resource struct {
	users []*resource
	freed int
}

func (r *resource) free() error {
	for _, user := range r.users {
		if user.freed == 0 {
			return &rdmacore.Error{Op: "free", Errno: syscall.EBUSY}
		}
	}
	r.freed++
	return nil
}

func entriesOf(resources ...*resource) (entries []*free) {
	for _, r := range resources {
		entries = append(entries, &free{what: "it", do: r.free})
	}
	return entries
}

// Whatever the order in which things were made, all go, each once.
func TestFreeInWhateverOrder(t *testing.T) {
	user := &resource{}
	used := &resource{users: []*resource{user}}
	most := &resource{users: []*resource{used, user}}
	for name, order := range map[string][]*resource{
		"as made": {most, used, user}, "the other way": {user, used, most}, "mixed": {used, most, user},
	} {
		user.freed, used.freed, most.freed = 0, 0, 0
		if failures := freeAll(entriesOf(order...)); failures != nil {
			t.Errorf("%s: %v", name, failures)
		}
		for _, r := range order {
			if r.freed != 1 {
				t.Errorf("%s: it was freed %d times", name, r.freed)
			}
		}
	}
}

// An object that cannot be freed is reported once, delays nothing, and can be freed when it is no longer in use.
func TestFreeWhatIsInUse(t *testing.T) {
	user := &resource{}
	used, other := &resource{users: []*resource{user}}, &resource{}
	last := &resource{users: []*resource{other}}
	entries := entriesOf(used, other, last)
	failures := freeAll(entries)
	if len(failures) != 1 || !strings.HasPrefix(failures[0].Error(), "free it: ") ||
		!errors.Is(failures[0], syscall.EBUSY) {
		t.Errorf("%v", failures)
	}
	if used.freed != 0 || other.freed != 1 || last.freed != 1 {
		t.Errorf("freed %d, %d and %d times", used.freed, other.freed, last.freed)
	}
	user.freed = 1
	for range 2 {
		if err := entries[0].freeNow(); err != nil || used.freed != 1 {
			t.Errorf("%v after it was freed %d times", err, used.freed)
		}
	}
}
