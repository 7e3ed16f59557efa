package hostfuncs

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"rdmarun/hostfuncs/stream"
	"rdmarun/rdmacore"
)

// Config is what an instance gets from its host.
type Config struct {
	Provider *rdmacore.Provider
	// Serial distinguishes instances of one process: handles of one are not valid in another.
	Serial uint32
	// Device is what the guest means by no device in particular; nil is the provider's first with an active port.
	Device *rdmacore.Device
	// Log takes what the guest logs; nil discards it.  Its error is the guest's.
	Log func(level slog.Level, text string) error
	// Barrier waits until all parties of that name are there or ctx ends, on the clock of the provider; nil is a party
	// of one.
	Barrier func(ctx context.Context, name string) error
	// Participant is the role by which other guests find this one's streams; with nil they cannot find it.
	Participant *stream.Participant
	// Listening is called when the guest begins to listen, ceases to, and when it could not; may be nil.
	Listening func(Listening)
	// Budget is what the guest may have; nil is one with the default limits.  The host charges the guest's memory to
	// it.
	Budget *Budget
	// Deny lists what the guest may not do; its functions answer -EPERM.
	Deny Capabilities
	// Rules narrow down what it may.
	Rules Rules
}

// Instance is one guest's side of the ABI: its memory, its handles and the objects behind them.  It is
// used by the goroutine that runs the guest; only RequestStop, End, Waiting and Still may be called from another.
type Instance struct {
	provider    *rdmacore.Provider
	resolver    *rdmacore.Resolver
	device      *rdmacore.Device // nil is the provider's default
	log         func(level slog.Level, text string) error
	barrier     func(ctx context.Context, name string) error
	listens     func(Listening)
	denied      Capability
	rules       Rules
	clock       *rdmacore.Clock
	participant *stream.Participant
	budget      *Budget
	work        *rdmacore.Work // what the data path is called by

	region *rdmacore.Memory // the whole reservation
	memory []byte           // what the guest has of it now
	base   uintptr          // address of its first byte

	ctx       context.Context // ends with the guest's right to run
	over      atomic.Bool     // End was called: ctx has ended or will at once
	lastError error

	mu      sync.Mutex // of what follows
	waiting string     // the function that waits, or did when the guest ended

	// stop is ended by RequestStop; one wait is broken off for it.
	stop          context.Context
	requestStop   context.CancelFunc
	stopDelivered bool

	channels     handleTable[*rdmacore.EventChannel]
	endpoints    handleTable[*endpoint]
	pds          handleTable[*rdmacore.PD]
	mrs          handleTable[*rdmacore.MR]
	cqs          handleTable[*rdmacore.CQ]
	qps          handleTable[*rdmacore.QP]
	events       handleTable[*rdmacore.Event] // not acknowledged
	srqs         handleTable[*rdmacore.SRQ]
	ahs          handleTable[*rdmacore.AH]
	mws          handleTable[*rdmacore.MW]
	eventfds     handleTable[*eventfd]
	streams      handleTable[*streamEnd]
	devices      handleTable[*opened]
	compChannels handleTable[*rdmacore.CompChannel]
	poller       *rdmacore.Poller        // of poll_set; nil before its first wait
	byID         map[*rdmacore.ID]Handle // endpoints by the id that events name
}

// NewInstance makes the instance of a guest that is about to start.
func NewInstance(config Config) *Instance {
	// 97 has no factor in common with the number of generations less one, so that as many instances in
	// a row begin differently.
	const generations = generationMask
	first := 1 + config.Serial*97%generations
	budget := config.Budget
	if budget == nil {
		budget = NewBudget(Limits{})
	}
	i := &Instance{
		provider:    config.Provider,
		resolver:    config.Provider.NewResolver(),
		device:      config.Device,
		log:         config.Log,
		barrier:     config.Barrier,
		listens:     config.Listening,
		denied:      config.Deny &^ CapabilityBase,
		rules:       config.Rules,
		clock:       config.Provider.Clock(),
		budget:      budget,
		participant: config.Participant,
		work:        config.Provider.NewWork(),
		ctx:         context.Background(),
		byID:        make(map[*rdmacore.ID]Handle),
	}
	if i.participant == nil {
		i.participant = stream.New().Participant("")
	}
	i.stop, i.requestStop = context.WithCancel(context.Background())
	i.channels = handleTable[*rdmacore.EventChannel]{kind: kindChannel, budget: budget, first: first}
	i.endpoints = handleTable[*endpoint]{kind: kindEP, budget: budget, first: first}
	i.pds = handleTable[*rdmacore.PD]{kind: kindPD, budget: budget, first: first}
	i.mrs = handleTable[*rdmacore.MR]{kind: kindMR, budget: budget, first: first}
	i.cqs = handleTable[*rdmacore.CQ]{kind: kindCQ, budget: budget, first: first}
	i.qps = handleTable[*rdmacore.QP]{kind: kindQP, budget: budget, first: first}
	i.events = handleTable[*rdmacore.Event]{kind: kindEvent, budget: budget, first: first}
	i.srqs = handleTable[*rdmacore.SRQ]{kind: kindSRQ, budget: budget, first: first}
	i.ahs = handleTable[*rdmacore.AH]{kind: kindAH, budget: budget, first: first}
	i.mws = handleTable[*rdmacore.MW]{kind: kindMW, budget: budget, first: first}
	i.compChannels = handleTable[*rdmacore.CompChannel]{kind: kindCompChannel, budget: budget, first: first}
	i.devices = handleTable[*opened]{kind: kindDevice, budget: budget, first: first}
	i.streams = handleTable[*streamEnd]{kind: kindStream, budget: budget, first: first}
	i.eventfds = handleTable[*eventfd]{kind: kindEventFD, budget: budget, first: first}
	return i
}

// SetMemory sets where the guest's linear memory is: the first size bytes of region.  The caller
// calls it again whenever the memory has grown.  The instance does not hold a reference of its own.
func (i *Instance) SetMemory(region *rdmacore.Memory, size int) {
	i.region, i.base = region, region.Base()
	i.memory = region.Bytes()[:size:size]
}

// End removes the guest's right to run. The host function that it calls next does not return; neither does a wait
// under way when the guest's context ends. Any goroutine may call it.
func (i *Instance) End() { i.over.Store(true) }

// Enter notes that a function waits for the guest, Leave that it returns.  Where it does not, Waiting still has it.
func (i *Instance) Enter(function *string) { i.setWaiting(*function) }

// Leave is the end of Enter.
func (i *Instance) Leave() { i.setWaiting("") }

func (i *Instance) setWaiting(function string) {
	i.mu.Lock()
	i.waiting = function
	i.mu.Unlock()
}

// Waiting is the function that waits for the guest, "" while none does.  Any goroutine may call it.
func (i *Instance) Waiting() (function string) {
	i.Still(func(waiting string) { function = waiting })
	return function
}

// Still does something while no function begins or ends to wait for the guest: during it, a guest that waits stays in
// the host.  Any goroutine may call it.
func (i *Instance) Still(do func(waiting string)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	do(i.waiting)
}

// RequestStop asks the guest to end. The wait that it is in, or else its next one, returns -ECANCELED, once.
// stop_requested is 1 from now on.
func (i *Instance) RequestStop() { i.requestStop() }

// instanceContext is the context a guest is called with.  Finding the instance is a type assertion for
// wazero hands this very value to host functions.
type instanceContext struct {
	context.Context
	instance *Instance
}

type instanceKey struct{}

func (c *instanceContext) Value(key any) any {
	if key == (instanceKey{}) {
		return c.instance
	}
	return c.Context.Value(key)
}

// Context is the context to call the guest with.  When ctx ends, so do the guest's waits.
func (i *Instance) Context(ctx context.Context) context.Context {
	i.ctx = ctx
	return &instanceContext{ctx, i}
}

// InstanceOf is the instance that a host function was called for.
func InstanceOf(ctx context.Context) *Instance { return instanceOf(ctx) }

// Memory is what the guest has of its memory now.
func (i *Instance) Memory() []byte { return i.memory }

// LastError is why the guest's last call that failed did.
func (i *Instance) LastError() error { return i.lastError }

func instanceOf(ctx context.Context) *Instance {
	if c, ok := ctx.(*instanceContext); ok {
		return c.instance
	}
	return ctx.Value(instanceKey{}).(*Instance)
}
