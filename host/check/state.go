package check

import (
	"time"

	"rdmarun/host/trace"
	"rdmarun/rdmacore"
)

// process is what is known of a process from its calls. Objects are by the names that the trace gives them.
type process struct {
	objects map[string]*object
	gone    map[string]*trace.Call // by which objects were destroyed

	regions    map[string]*region
	keys       map[uint32]*region // by lkey: the newest
	registered map[span]int       // how often a range was registered
	queuePairs map[string]*queuePair
	numbers    map[uint32]*queuePair
	receives   map[string]*queue // of queue pairs and shared receive queues
	domains    map[string]string // the protection domain of each of them
	queues     map[string]*completionQueue
	parents    map[string]string // of other domains: the protection domain; "": not known
	endpoints  map[string]*endpoint
	writing    spans                      // of requests that are outstanding
	spare      []*request                 // that nothing refers to
	threads    map[string]*singleThreaded // by the protection domain, or the completion queue
	unrepeated []unrepeated
	forkSafe   bool
	killed     bool // by a signal
}

func newProcess() *process {
	return &process{
		objects: map[string]*object{}, gone: map[string]*trace.Call{}, regions: map[string]*region{},
		keys: map[uint32]*region{}, registered: map[span]int{}, queuePairs: map[string]*queuePair{},
		numbers: map[uint32]*queuePair{}, receives: map[string]*queue{}, domains: map[string]string{},
		queues: map[string]*completionQueue{}, endpoints: map[string]*endpoint{},
		threads: map[string]*singleThreaded{}, parents: map[string]string{},
	}
}

// object is one that the program has made.
type object struct {
	call string
	site trace.Site
}

// queuePair is a queue pair.
type queuePair struct {
	name, pd       string
	sendCQ, recvCQ string
	send           *queue
	receive        *queue // its own, or that of its SRQ
	shared         bool   // it has a SRQ
	signalAll      bool
	maxInline      uint64
	connected      bool     // messages may come
	failed         *failure // the first completion that has failed
	site           trace.Site
	accepted       *trace.Call // rdma_accept, if no receive was posted before
	hasReceived    bool        // a receive was posted
	isTarget       bool        // of XRC: what it receives goes to shared receive queues
	over           *trace.Call // the event that has ended its connection, until the program disconnects
	timewait       *trace.Call // the end of its connection, until TIMEWAIT_EXIT
}

// failure is a completion that has failed.
type failure struct {
	status   rdmacore.WCStatus
	end      time.Duration // of the poll
	site     trace.Site
	reported bool
}

// completionQueue is a completion queue.
type completionQueue struct {
	name        string
	channel     string
	entries     int
	outstanding int                 // completions that may come
	pairs       map[*queuePair]bool // the queue pairs that it completes requests of
	shared      []*queue            // the shared receive queues of XRC that it completes requests of
	armed       *trace.Call         // since the last poll, when completions could come already
	unacked     int                 // events
	site        trace.Site
}

// endpoint is an rdma_cm_id.
type endpoint struct {
	queuePair string
	srq       string
	datagram  bool
	unacked   int         // events
	removed   *trace.Call // its DEVICE_REMOVAL
	// disconnected is set after rdma_disconnect.
	disconnected bool
}
