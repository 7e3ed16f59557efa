package lab

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	"rdmarun/host/doctor"
	"rdmarun/host/printable"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/rdmacore"
)

// Order is what a controller has an agent do: to play roles of a run.
type Order struct {
	// Process is what the agent's process is called in the run, Controller what the controller's is.
	Process    string `json:"process"`
	Controller string `json:"controller"`
	// Pack has the scenarios and what they need, so many bytes with that SHA-256.
	Pack   string `json:"pack"`
	Length int    `json:"length"`
	// Files maps the paths of the controller to the pack.
	Files Files `json:"files"`
	// Scenarios are the paths, and Cases the ids of what is selected in them, both as the controller has them.
	Scenarios   []string          `json:"scenarios"`
	Cases       []string          `json:"cases"`
	Given       map[string]string `json:"given,omitempty"`
	Environment map[string]string `json:"environment,omitempty"`

	// Hosts is how many hosts roles are placed on, as the files have them.
	Hosts map[string]int `json:"hosts,omitempty"`

	Roles       []string                  `json:"roles"`
	Addresses   map[string]netip.Addr     `json:"addresses,omitempty"`
	Places      map[string]scenario.Place `json:"places,omitempty"`
	Provider    string                    `json:"provider"`
	FilesChoose bool                      `json:"files_choose,omitempty"`
	Link        string                    `json:"link,omitempty"`
	Legal       rdmacore.Legal            `json:"legal,omitzero"`
	// Route has roles without an address of their own take one that other hosts reach.
	Route bool `json:"route,omitempty"`

	Seed         *uint64       `json:"seed,omitempty"`
	Drawn        uint64        `json:"drawn,omitempty"`
	TimeScale    float64       `json:"time_scale"`
	Stall        time.Duration `json:"stall,omitempty"`
	Interval     time.Duration `json:"interval,omitempty"`
	NoThresholds bool          `json:"no_thresholds,omitempty"`
	Wants        []record.Kind `json:"wants,omitempty"`
	Silence      time.Duration `json:"silence"`
	// Capture selects the host's packets for the controller; nil: none.
	Capture *Capture `json:"capture,omitempty"`
	// OnFailure selects the packets of each failed case; nil: none.
	OnFailure *Capture `json:"on_failure,omitempty"`
	// Trace selects the calls of its guests; nil: none.
	Trace *Trace `json:"trace,omitempty"`
}

// Capture is how much of a host's packets goes to the controller. It limits the bytes of each packet, 0 for all, and
// the bytes of blocks of pcapng.
type Capture struct {
	SnapLength uint32 `json:"snap_length,omitempty"`
	Most       int64  `json:"most"`
}

// Captured is what became of a host's packets.
type Captured struct {
	// Missing were not taken in time, Beyond are beyond the controller's limit.
	Missing uint64 `json:"missing,omitempty"`
	Beyond  uint64 `json:"beyond,omitempty"`
	// Earlier and Later are those around a failure for which there was no room.
	Earlier uint64 `json:"earlier,omitempty"`
	Later   uint64 `json:"later,omitempty"`
	Error   string `json:"error,omitempty"`
}

// Trace is which calls of a host's guests the controller sees: those of these functions, without any those of all. It
// also limits the bytes of lines.
type Trace struct {
	Functions []string `json:"functions,omitempty"`
	Most      int64    `json:"most"`
}

// Traced is the end of a trace: the number of lines beyond the controller's limit.
type Traced struct {
	Beyond uint64 `json:"beyond,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Files are where a pack comes from.
type Files struct {
	// Base is the folder that the pack has, Folder the one that relative paths begin in.
	Base   string `json:"base"`
	Folder string `json:"folder"`
	// Archives are the folders into which packs were unpacked, and the actual places of files that are not at their
	// paths.
	Archives map[string]string `json:"archives,omitempty"`
}

// Done is an agent's answer to an order: nothing, or why it cannot do it.
type Done struct {
	Error string `json:"error,omitempty"`
	// Hint is what to do about it.
	Hint string `json:"hint,omitempty"`
}

// Look is what a host must check: the provider and the devices for its roles, and the address that the lab file gives
// it.
type Look struct {
	Provider string     `json:"provider"`
	Devices  []string   `json:"devices,omitempty"`
	Address  netip.Addr `json:"address,omitzero"`
	// Route is that of an Order.
	Route bool `json:"route,omitempty"`
}

// Examined is what a host has found out about itself.
type Examined struct {
	// Error is why it could not.
	Error    string           `json:"error,omitempty"`
	Version  string           `json:"version"`
	Device   string           `json:"device,omitempty"`
	Address  string           `json:"address,omitempty"`
	GIDType  string           `json:"gid_type,omitempty"`
	MTU      int              `json:"mtu,omitempty"` // of the path, in bytes of payload
	Findings []doctor.Finding `json:"findings,omitempty"`
}

// Limits of an agent's text that is shown.
const (
	// MaxText bounds a text for people, maxFindings how many findings there are.
	MaxText, maxFindings = 600, 256
)

// Text is a host's text, made printable.
func Text(said string) string { return printable.Brief(said, MaxText) }

// ParseDone reads an agent's answer to an order.
func ParseDone(said []byte) (done Done, err error) {
	if err := json.Unmarshal(said, &done); err != nil {
		return done, fmt.Errorf("its agent's answer cannot be read: %s", Text(err.Error()))
	}
	printable.Each(&done, Text)
	return done, nil
}

// ParseExamined parses a host's description of itself.
func ParseExamined(said []byte) (found Examined, err error) {
	if err := json.Unmarshal(said, &found); err != nil {
		return Examined{}, fmt.Errorf("invalid self-description: %s", Text(err.Error()))
	}
	found.MTU = max(0, found.MTU)
	found.Findings = found.Findings[:min(len(found.Findings), maxFindings)]
	address, err := netip.ParseAddr(found.Address)
	if printable.Each(&found, Text); found.Address != "" && err != nil {
		return Examined{}, fmt.Errorf("its address %.80q is none", found.Address) // a command to be typed contains it
	} else if found.Address != "" {
		found.Address = address.WithZone("").String() // and a zone may be any text
	}
	return found, nil
}

// Part asks for bytes of a pack.
type Part struct {
	Pack   string `json:"pack"`
	Offset int    `json:"offset"`
}

// The subjects of messages of controllers and agents on the bus, in addition to those of a meeting.
const (
	SubjectOrder = "order" // a question of the controller: an Order; the answer is Done
	SubjectPart  = "part"  // a question of an agent: a Part; the answer is its bytes
	// SubjectExamine is a question of the controller: a Look; the answer is Examined.
	SubjectExamine = "examine"
	SubjectClock   = "clock" // a question of the controller: the answer is the agent's clock, in nanoseconds since 1970
	// SubjectPackets are questions of an agent: blocks of pcapng.  SubjectCaptured is one: Captured, at the end of the
	// run, or of a case that failed.  All answers are empty.
	SubjectPackets, SubjectCaptured = "packets", "captured"
	// SubjectCalls are questions of an agent: whole lines of its guests' calls.  SubjectTraced is one: Traced.
	SubjectCalls, SubjectTraced = "calls", "traced"
)

const (
	// PartBytes is how much of a pack one message has, MaxPack how many bytes all of it may have.
	PartBytes = 512 << 10
	MaxPack   = 1 << 30
	// Silence is how long an agent may be silent before it counts as lost.
	Silence = 4500 * time.Millisecond
)
