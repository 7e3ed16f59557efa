package hostfuncs

// Handle names an object of one instance to its guest: kind(4) | generation(11) | index(16).  The top
// bit stays clear, because handles are also results and a negative result is an errno.
type Handle uint32

// handleKind is the kind of object that a handle names.
type handleKind uint32

// The kinds of handle; 0 is none, so that 0 is never a handle.
const (
	kindChannel handleKind = 1 + iota
	kindEP
	kindPD
	kindMR
	kindCQ
	kindQP
	kindEvent
	kindSRQ
	kindAH
	kindMW
	kindEventFD
	kindStream
	kindDevice
	kindCompChannel
)

var kindNames = map[handleKind]string{
	kindChannel: "event_channel", kindEP: "ep", kindPD: "pd", kindMR: "mr", kindCQ: "cq", kindQP: "qp",
	kindEvent: "event", kindSRQ: "srq", kindAH: "ah", kindMW: "mw", kindEventFD: "eventfd", kindStream: "stream",
	kindDevice:      "device",
	kindCompChannel: "comp_channel",
}

func (k handleKind) String() string { return kindNames[k] }

const (
	indexBits      = 16
	generationBits = 11
	generationMask = 1<<generationBits - 1
)

// handleTable holds an instance's objects of one kind.
type handleTable[T comparable] struct {
	kind    handleKind
	budget  *Budget // what objects cost is credited here as they go
	first   uint32  // the generation that slots begin with; differs between instances
	slots   []handleSlot[T]
	free    []uint16     // used first in, first out, so that a handle's number comes back late
	handles map[T]Handle // of the objects
}

type handleSlot[T comparable] struct {
	handle     Handle // 0 while the slot is free
	generation uint32
	cost       Cost // charged for the object
	added      Cost // charged since, for what hangs on it
	object     T
}

// add names the object, for which cost was charged; false when there are 65536 of the kind already.
func (t *handleTable[T]) add(object T, cost Cost) (Handle, bool) {
	var index int
	if len(t.free) > 0 {
		index, t.free = int(t.free[0]), t.free[1:]
	} else if index = len(t.slots); index < 1<<indexBits {
		t.slots = append(t.slots, handleSlot[T]{generation: t.first})
	} else {
		return 0, false
	}
	slot := &t.slots[index]
	slot.object, slot.cost = object, cost
	slot.handle = Handle(uint32(t.kind)<<(indexBits+generationBits) | slot.generation<<indexBits | uint32(index))
	if t.handles == nil {
		t.handles = make(map[T]Handle)
	}
	t.handles[object] = slot.handle
	return slot.handle, true
}

// find is the handle of an object; 0 when it has none.
func (t *handleTable[T]) find(object T) Handle { return t.handles[object] }

// get finds the object; false when the handle is stale, foreign or of another kind.
func (t *handleTable[T]) get(handle Handle) (object T, ok bool) {
	index := int(handle & (1<<indexBits - 1))
	if index >= len(t.slots) || t.slots[index].handle != handle || handle == 0 {
		return object, false
	}
	return t.slots[index].object, true
}

// slot is that of a handle; nil for one that get does not find.
func (t *handleTable[T]) slot(handle Handle) *handleSlot[T] {
	if _, ok := t.get(handle); !ok {
		return nil
	}
	return &t.slots[handle&(1<<indexBits-1)]
}

// remove makes the handle stale and credits what the object cost.
func (t *handleTable[T]) remove(handle Handle) {
	if _, ok := t.get(handle); !ok {
		return
	}
	index := int(handle & (1<<indexBits - 1))
	slot := &t.slots[index]
	delete(t.handles, slot.object)
	t.budget.Credit(slot.cost.plus(slot.added))
	*slot = handleSlot[T]{generation: (slot.generation + 1) & generationMask}
	t.free = append(t.free, uint16(index))
}

// all calls each for every live object until it returns false.
func (t *handleTable[T]) all(each func(Handle, T) bool) {
	for i := range t.slots {
		if slot := &t.slots[i]; slot.handle != 0 && !each(slot.handle, slot.object) {
			return
		}
	}
}

// count is the number of live objects.
func (t *handleTable[T]) count() int { return len(t.slots) - len(t.free) }
