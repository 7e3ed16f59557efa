package rdmacore

import (
	"fmt"
	"syscall"
)

// foreign is the error of an object that another provider made: each has memory and numbers of its own, and
// librdmacm would follow pointers that are not its.
func foreign(op, kind string, of, here *Provider) *Error {
	whose := "another " + of.Name()
	if of.Name() != here.Name() {
		whose = fmt.Sprintf("the provider %s", of.Name())
	}
	return fail(op, syscall.EINVAL, "the %s belongs to %s, the id to %s", kind, whose, here.Name())
}
