// Package join is a standing lab: agents that wait on a NATS server, by their names, and controllers that take them for a run,
// one at a time.
//
// What an agent that waits does for a run is what a launcher does: it starts rdmarun agent --stdio, and passes its standard
// input and output on, through the server.  So a run is a process of its own, of which nothing is left, and the rest of a
// lab knows no difference.
package join

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"rdmarun/host/lab"
	"rdmarun/host/printable"
)

// subjectAgents is the question who there is.
const subjectAgents = "rdmarun.lab.agents"

// subjectLease is the question for an agent; the answer says where its end of the stream hears.
func subjectLease(agent string) string { return subjectAgent(agent) + ".lease" }

// subjectRun is where an agent hears what is for one run, subjectController where the controller of that run does.
func subjectRun(agent, id string) string { return subjectAgent(agent) + ".run." + id }
func subjectController(id string) string { return "rdmarun.lab.controller." + id }

// subjectAgent is of an agent alone: dots would make two tokens of a name.
func subjectAgent(agent string) string {
	return "rdmarun.lab.agent." + strings.ReplaceAll(agent, ".", "/")
}

// Notes of an agent, beside what its process says.
const (
	notePrinted = "printed" // a line that its process has printed
	noteEnded   = "ended"   // how its process has ended; "" for by itself
)

// Presence is what an agent says of itself.
type Presence struct {
	Name    string            `json:"name"`
	Version string            `json:"version"`
	Labels  map[string]string `json:"labels,omitempty"`
	// Holder is whose run it serves, since Since; "": it is free.
	Holder string    `json:"holder,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}

// request asks an agent for its time.
type request struct {
	Protocol int    `json:"protocol"`
	Holder   string `json:"holder"`
	// Stream is where the controller hears.
	Stream string `json:"stream"`
}

// grant is the answer: where the agent hears, or who has it, or why it cannot.
type grant struct {
	Stream string    `json:"stream,omitempty"`
	Holder string    `json:"holder,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	Error  string    `json:"error,omitempty"`
}

// Limits of what agents and controllers say.
const (
	// MostAgents is how many agents a lab has at most.
	MostAgents = 4096
	// longest bounds what an agent says of itself, mostLabels how many labels it has, and longestWord a word of it.
	longest, mostLabels, longestWord = 16 << 10, 64, 128
)

var (
	nameForm = regexp.MustCompile(lab.NameForm)
	idForm   = regexp.MustCompile(`^[0-9A-Z]{26}$`)
)

// CheckName tells what is wrong with a name of an agent.
func CheckName(name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf("%.80q cannot be the name of a host: it has letters, digits, dots and dashes, at most 63", name)
	}
	return nil
}

// CheckLabels tells what is wrong with the labels of an agent.
func CheckLabels(labels map[string]string) error {
	if len(labels) > mostLabels {
		return fmt.Errorf("%d labels are too many: at most %d", len(labels), mostLabels)
	}
	for name, value := range labels {
		for _, word := range []string{name, value} {
			if len(word) > longestWord || !utf8.ValidString(word) || printable.Line(word) != word {
				return fmt.Errorf("%.80q cannot be of a label: at most %d bytes, which can be printed", word, longestWord)
			}
		}
	}
	return nil
}

// newID draws what nobody guesses.
func newID() string { return rand.Text() }

// parsePresence reads what an agent says of itself.
func parsePresence(said []byte) (p Presence, err error) {
	if len(said) > longest {
		return p, fmt.Errorf("an agent says %d bytes of itself", len(said))
	}
	if err := json.Unmarshal(said, &p); err != nil {
		return p, fmt.Errorf("an agent says of itself what cannot be read: %s", lab.Text(err.Error()))
	}
	if err := CheckName(p.Name); err != nil {
		return p, err
	}
	if err := CheckLabels(p.Labels); err != nil {
		return p, fmt.Errorf("agent %s: %w", p.Name, err)
	}
	p.Version, p.Holder = lab.Text(p.Version), lab.Text(p.Holder)
	return p, nil
}

// parseGrant reads the answer to a request.
func parseGrant(said []byte) (g grant, err error) {
	if len(said) > longest {
		return g, fmt.Errorf("its answer has %d bytes", len(said))
	}
	if err := json.Unmarshal(said, &g); err != nil {
		return g, fmt.Errorf("its answer cannot be read: %s", lab.Text(err.Error()))
	}
	g.Error, g.Holder = lab.Text(g.Error), lab.Text(g.Holder)
	if g.Error == "" && g.Holder == "" && !idForm.MatchString(g.Stream) {
		return g, fmt.Errorf("its answer makes no sense")
	}
	return g, nil
}

// parseRequest reads what a controller asks.
func parseRequest(said []byte) (r request, err error) {
	if len(said) > longest {
		return r, fmt.Errorf("the question has %d bytes", len(said))
	}
	if err := json.Unmarshal(said, &r); err != nil {
		return r, fmt.Errorf("the question cannot be read: %s", lab.Text(err.Error()))
	}
	if r.Holder = lab.Text(r.Holder); r.Holder == "" || !idForm.MatchString(r.Stream) {
		return r, fmt.Errorf("the question makes no sense")
	}
	if r.Protocol != lab.Protocol {
		return r, fmt.Errorf("it speaks protocol %d, and this controller %d: install the same rdmarun on both", lab.Protocol, r.Protocol)
	}
	return r, nil
}
