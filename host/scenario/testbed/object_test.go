package testbed

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"rdmarun/rdmacore"
)

// TestObjects: an object of each kind is created without a name and found by the name that it gets. Its step or the
// end frees it.
func TestObjects(t *testing.T) {
	testbed := newTestbed(t, &lines{}, nil)
	role, err := testbed.Role("driver")
	if err != nil {
		t.Fatal(err)
	}
	testKind(t, role, Domains, role.NewDomain)
	testKind(t, role, Queues, func() (*Queue, error) { return role.NewQueue(4) })
	testKind(t, role, SharedQueues, func() (*SharedQueue, error) {
		return role.NewSharedQueue(role.PD(), rdmacore.SRQAttr{MaxWR: 1, MaxSGE: 1})
	})
	testKind(t, role, Windows, func() (*Window, error) { return role.NewWindow(role.PD(), 1) })
}

func testKind[T any](t *testing.T, role *Role, kind Kind[T], create func() (*Object[T], error)) {
	t.Run(kind.What, func(t *testing.T) {
		first, err := create()
		if err != nil {
			t.Fatal(err)
		}
		_, err = kind.Find(role, "name")
		var failure *Failure
		if !errors.As(err, &failure) || !errors.Is(err, syscall.EBADF) || !strings.Contains(failure.Hint, kind.Maker) {
			t.Errorf("what has no name yet is found: %v", err)
		}
		first.Bind("name")
		if found, err := kind.Find(role, "name"); found != first || err != nil {
			t.Errorf("found %v, %v, want the first", found, err)
		}
		second, err := create()
		if err != nil {
			t.Fatal(err)
		}
		second.Bind("name")
		if found, err := kind.Find(role, "name"); found != second || err != nil {
			t.Errorf("found %v, %v, want the newer one of the name", found, err)
		}
		if err := first.Free(); err != nil {
			t.Errorf("free: %v", err)
		}
		if err := first.release.freeNow(); err != nil {
			t.Errorf("what a step has freed is freed again: %v", err)
		}
	}) // Close frees the second, and newTestbed reports its errors
}

// TestObjectInUse: what something still uses is not freed, and may be tried again.
func TestObjectInUse(t *testing.T) {
	testbed := newTestbed(t, &lines{}, nil)
	role, err := testbed.Role("driver")
	if err != nil {
		t.Fatal(err)
	}
	domain, err := role.NewDomain()
	if err != nil {
		t.Fatal(err)
	}
	window, err := role.NewWindow(domain.Native(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := domain.Free(); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("free a domain with a window: %v, want EBUSY", err)
	}
	if err := window.Free(); err != nil {
		t.Error(err)
	}
	if err := domain.Free(); err != nil {
		t.Errorf("free the domain without it: %v", err)
	}
}

// TestFaultLife: a fault is found by its name once it has one, and healed once.
func TestFaultLife(t *testing.T) {
	testbed := newTestbed(t, &lines{}, nil)
	if _, err := testbed.Fault("loss"); err == nil {
		t.Error("a fault is found before it is made")
	}
	fault, err := testbed.ChangeAddress(nil)
	if err != nil {
		t.Fatal(err)
	}
	fault.Bind("loss")
	found, err := testbed.Fault("loss")
	if err != nil || found != fault {
		t.Fatalf("found %v, %v", found, err)
	}
	if _, err := found.Heal(); err != nil {
		t.Errorf("heal: %v", err)
	}
	if _, err := found.Heal(); err == nil || !strings.Contains(err.Error(), `"loss" is healed already`) {
		t.Errorf("heal it again: %v", err)
	}
}
