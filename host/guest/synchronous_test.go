package guest_test

import (
	"testing"

	"rdmarun/host/guest"
)

// Synchronous endpoints, options, migration, held events, names and multicast, from a guest.
func TestSynchronousGuest(t *testing.T) {
	r, p := newRuntime(t, guest.InterruptMetered), newProvider(t)
	var printed output
	result := r.Run(testContext(t), compileGo(t, r, "rdmarun/guests/synchronous"),
		guest.Config{Provider: p, Stdout: &printed, Stderr: &printed})
	if !result.OK() || printed.String() != "connect\nrefused\nmulticast\n" {
		t.Errorf("%v\n%s", result.Err, &printed)
	}
}
