package hostfuncs

import (
	"fmt"
	"syscall"
)

// Limits bound what one guest may have at once.  Zero in any of them is its default.
type Limits struct {
	// Memory is how many bytes of the host's memory the guest may have in all. It covers its linear memory, its
	// tables and its RDMA objects with their rings and queued events.
	Memory int64
	// Registered is how many bytes its memory regions may have together; one byte counts in each of them.
	Registered int64
	// Handles is how many objects of all kinds it may have.
	Handles int64
	// Files is how many of the process's file descriptors its event channels and CQs may have.
	Files int64
	// Ports is how many of the provider's ports its endpoints may have.  There are some 28,000 for all endpoints with a
	// port that the provider chooses.
	Ports int64
}

// The default limits of a guest.
const (
	DefaultMemory     = 256 << 20
	DefaultRegistered = 16 << 30
	DefaultHandles    = 1 << 17
	DefaultFiles      = 1 << 12
	DefaultPorts      = 1 << 12
)

// withDefaults has a number in each limit.
func (l Limits) withDefaults() Limits {
	for _, limit := range []struct {
		value    *int64
		fallback int64
	}{
		{&l.Memory, DefaultMemory}, {&l.Registered, DefaultRegistered}, {&l.Handles, DefaultHandles},
		{&l.Files, DefaultFiles}, {&l.Ports, DefaultPorts},
	} {
		if *limit.value == 0 {
			*limit.value = limit.fallback
		}
	}
	return l
}

// Cost is what something takes of a guest's budget.
type Cost struct{ Memory, Registered, Handles, Files, Ports int64 }

func (c Cost) plus(other Cost) Cost {
	return Cost{
		c.Memory + other.Memory, c.Registered + other.Registered, c.Handles + other.Handles, c.Files + other.Files,
		c.Ports + other.Ports,
	}
}

func (c Cost) minus(other Cost) Cost {
	return Cost{
		c.Memory - other.Memory, c.Registered - other.Registered, c.Handles - other.Handles, c.Files - other.Files,
		c.Ports - other.Ports,
	}
}

// Budget is the one account of what a guest has.  Everything that takes the host's memory for a guest is charged here
// before it is made, and credited when it is gone.  The goroutine that runs the guest uses it.
//
// Actions of peers are not charged to a guest when they happen. A listener pays for a backlog of requests in advance,
// and a call pays for the event that ends it. So no peer can use up the budget of another guest.
type Budget struct {
	limits Limits
	used   Cost
	// A guest's tables grow in compiled code, which the host sees afterwards (SetTables).
	tableBytes func() int64
	tableRoom  func(bytes int64)
}

// NewBudget makes a budget of which nothing is used.
func NewBudget(limits Limits) *Budget { return &Budget{limits: limits.withDefaults()} }

// SetTables adds memory that grows without a charge: bytes is its size by now, and the budget calls room with its
// limit whenever that changes.
func (b *Budget) SetTables(bytes func() int64, room func(bytes int64)) {
	b.tableBytes, b.tableRoom = bytes, room
	b.sendRoom()
}

func (b *Budget) sendRoom() {
	if b.tableRoom != nil {
		b.tableRoom(max(0, b.limits.Memory-b.used.Memory))
	}
}

// Limits are those of the budget.
func (b *Budget) Limits() Limits { return b.limits }

// Used is what is charged by now.
func (b *Budget) Used() Cost {
	used := b.used
	if b.tableBytes != nil {
		used.Memory += b.tableBytes()
	}
	return used
}

// Charge takes a cost from the budget, or nothing with an error that has ENOMEM or EMFILE and names the limit that
// is reached.
func (b *Budget) Charge(cost Cost) error {
	used := b.Used()
	for _, limit := range [...]struct {
		name             string
		most, used, more int64
		errno            syscall.Errno
		format           func(int64) string
	}{
		{"memory", b.limits.Memory, used.Memory, cost.Memory, syscall.ENOMEM, Bytes},
		{"registered", b.limits.Registered, used.Registered, cost.Registered, syscall.ENOMEM, Bytes},
		{"handles", b.limits.Handles, used.Handles, cost.Handles, syscall.EMFILE, count},
		{"files", b.limits.Files, used.Files, cost.Files, syscall.EMFILE, count},
		{"ports", b.limits.Ports, used.Ports, cost.Ports, syscall.EMFILE, count},
	} {
		if limit.more > 0 && limit.more > limit.most-limit.used {
			return &refusal{limit.errno, fmt.Sprintf("the guest has %s of its limit %q, which is %s, and this takes "+
				"%s more; free something, or raise the limit",
				limit.format(limit.used), limit.name, limit.format(limit.most), limit.format(limit.more))}
		}
	}
	b.used = b.used.plus(cost)
	b.sendRoom()
	return nil
}

// Credit gives a cost back that was charged.
func (b *Budget) Credit(cost Cost) {
	b.used = b.used.minus(cost)
	b.sendRoom()
}

// left is how much memory may still be charged.
func (b *Budget) left() int64 { return max(0, b.limits.Memory-b.Used().Memory) }

// Bytes writes an amount of memory with the unit that fits: 512 B, 64 KiB, 1.104 MiB.
func Bytes(amount int64) string {
	value, unit := float64(amount), "B"
	for _, larger := range []string{"KiB", "MiB", "GiB"} {
		if value < 1024 {
			break
		}
		value, unit = value/1024, larger
	}
	return fmt.Sprintf("%.4g%s", value, unit)
}

func count(n int64) string { return fmt.Sprint(n) }

// create makes an object within the guest's budget and gives it its handle.  What has got none is freed.
func create[T comparable](
	i *Instance, table *handleTable[T], cost Cost, make func() (T, error), free func(T) error,
) int32 {
	if err := i.budget.Charge(cost); err != nil {
		return i.fail(err)
	}
	object, err := make()
	if err != nil {
		i.budget.Credit(cost)
		return i.fail(err)
	}
	handle, ok := table.add(object, cost)
	if !ok {
		err := free(object)
		i.budget.Credit(cost)
		if err != nil {
			return i.fail(err)
		}
		return i.refuse(
			syscall.EMFILE, "a guest can have at most 65536 objects of the kind "+table.kind.String(),
		)
	}
	return int32(handle)
}

// resize makes an object of another size.  Its memory may be there twice meanwhile, and is charged so.
func resize[T comparable](i *Instance, table *handleTable[T], handle Handle, cost Cost, resize func() error) int32 {
	slot := table.slot(handle)
	more := cost.minus(slot.cost)
	more.Memory = cost.Memory
	if err := i.budget.Charge(more); err != nil {
		return i.fail(err)
	}
	if err := resize(); err != nil {
		i.budget.Credit(more)
		return i.fail(err)
	}
	i.budget.Credit(Cost{Memory: slot.cost.Memory})
	slot.cost = cost
	return 0
}

// charge is for what hangs on an object.  It is credited with the object, or by credit before.
func charge[T comparable](i *Instance, table *handleTable[T], handle Handle, cost Cost) error {
	if err := i.budget.Charge(cost); err != nil {
		return err
	}
	slot := table.slot(handle)
	slot.added = slot.added.plus(cost)
	return nil
}

// credit takes back what charge did, if it did.
func credit[T comparable](i *Instance, table *handleTable[T], handle Handle, cost Cost) {
	slot := table.slot(handle)
	if slot == nil || slot.added.Memory < cost.Memory {
		return
	}
	i.budget.Credit(cost)
	slot.added = slot.added.minus(cost)
}
