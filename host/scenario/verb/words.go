package verb

import (
	"cmp"
	"errors"
	"syscall"

	"rdmarun/host/scenario/explain"
	"rdmarun/rdmacore"
)

// The names of verbs.h stand in rdmacore and nowhere else; this takes them from there.

func messageNames() []string { return namesOf(rdmacore.ParseCMMessage) }

// AccessNames are the rights that a buffer can have.
func AccessNames() []string { return namesOf(rdmacore.ParseAccess) }

// standardFields is IBV_WC_STANDARD_FLAGS.
const standardFields = "STANDARD"

// FieldNames are the fields of completions that a queue can have.
func FieldNames() []string {
	return append([]string{standardFields}, namesOf(rdmacore.ParseWCFields)...)
}

// ParseField is the field, or the fields, of a name.
func ParseField(name string) (rdmacore.WCFields, error) {
	if name == standardFields {
		return rdmacore.WCFieldsStandard, nil
	}
	return rdmacore.ParseWCFields(name)
}

// BackingNames are what the memory of a buffer can be.
func BackingNames() []string { return namesOf(rdmacore.ParseBacking) }

// namesOf asks a parser for a name that nothing has: its error lists those that there are.
func namesOf[T any](parse func(string) (T, error)) []string {
	var unknown *rdmacore.NameError
	if _, err := parse("?"); errors.As(err, &unknown) {
		return unknown.Valid
	}
	return nil
}

// highestErrno bounds the search for errno names; Linux has 133, and some of its own up to 530.
const highestErrno = 531

// notSupportedAlias is the other name of EOPNOTSUPP, the one number with two.
const notSupportedAlias = "ENOTSUP"

// ErrnoNames lists the names that `expect: {errno: ..}` takes.
func ErrnoNames() []string {
	names := []string{notSupportedAlias}
	for errno := syscall.Errno(1); errno < highestErrno; errno++ {
		if name := explain.ErrnoName(errno); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// ErrnoName is the name of an errno, or its number where it has none.
func ErrnoName(errno syscall.Errno) string {
	return cmp.Or(explain.ErrnoName(errno), errno.Error())
}

// ErrnoAlias is another name that an errno has; its name where it has no other.
func ErrnoAlias(errno syscall.Errno) string {
	if errno == syscall.EOPNOTSUPP {
		return notSupportedAlias
	}
	return ErrnoName(errno)
}

// ParseErrno is the reverse of ErrnoName and ErrnoAlias.
func ParseErrno(name string) (syscall.Errno, bool) {
	for errno := syscall.Errno(1); errno < highestErrno; errno++ {
		if known := explain.ErrnoName(errno); known != "" && (known == name || ErrnoAlias(errno) == name) {
			return errno, true
		}
	}
	return 0, false
}

// highestReject bounds the search for reject reasons, IBTA volume 1, 12.6.7.2.
const highestReject = 64

// RejectReasons lists the names of reject reasons.
func RejectReasons() []string {
	var names []string
	for reason := 1; reason < highestReject; reason++ {
		if name := explain.RejectName(reason); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// ParseRejectReason finds a reject reason by its name.
func ParseRejectReason(name string) (int, bool) {
	for reason := 1; reason < highestReject; reason++ {
		if explain.RejectName(reason) == name {
			return reason, true
		}
	}
	return 0, false
}
