// Package join is a standing lab. Agents wait on a NATS server, by their names, and controllers take them for a run,
// one at a time.
//
// For a run, a waiting agent does what a launcher does. It starts rdmarun agent --stdio, and copies its standard input
// and output through the server. So a run is a process of its own that leaves nothing, and the rest of a lab works
// without a difference.
package join

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"rdmarun/host/lab"
	"rdmarun/host/printable"
)

// Every subject has the name of its only publisher, or of its only subscriber, and the user of the controller.  So a
// NATS server that permits each user only the subjects with its own name keeps it from the runs of others
// (docs/reference/lab.md).
//
//	rdmarun.lab.all.USER.RUN.QUESTION               a controller asks all agents
//	rdmarun.lab.agent.AGENT.USER.RUN.ask.QUESTION   it asks one
//	rdmarun.lab.to.USER.RUN.AGENT.answer.QUESTION   an agent answers
//	rdmarun.lab.agent.AGENT.USER.RUN.STREAM.>       from a controller to an agent that serves its run
//	rdmarun.lab.to.USER.RUN.AGENT.STREAM.>          from that agent
//
// RUN, QUESTION and STREAM cannot be guessed.
const root = "rdmarun.lab."

// caller is the asking process: a run of a user, or an agent that looks for another one of its name.
type caller struct{ user, run string }

// itself is the user of an agent that asks under its own name; no controller has it.
const itself = "_"

// toAll is the subject of a question to all agents. toAgent begins the subjects from a caller to one agent, and ask is
// that of a question to it.
func (c caller) toAll(question string) string {
	return strings.Join([]string{root + "all", c.user, c.run, question}, ".")
}
func (c caller) toAgent(agent string) string {
	return strings.Join([]string{root + "agent", token(agent), c.user, c.run}, ".")
}
func (c caller) ask(agent, question string) string { return c.toAgent(agent) + ".ask." + question }

// from begins the subjects from an agent to a caller, answer is that of its answer.
func (c caller) from(agent string) string {
	if c.user == itself {
		return c.toAgent(agent)
	}
	return strings.Join([]string{root + "to", c.user, c.run, token(agent)}, ".")
}
func (c caller) answer(agent, question string) string { return c.from(agent) + ".answer." + question }

// asked parses the subject of a question: the caller, and the last word of the answer's subject.
func asked(subject string) (c caller, question string, ok bool) {
	words := strings.Split(strings.TrimPrefix(subject, root), ".")
	switch {
	case len(words) == 4 && words[0] == "all":
		c, question = caller{words[1], words[2]}, words[3]
	case len(words) == 6 && words[0] == "agent" && words[4] == "ask":
		c, question = caller{words[2], words[3]}, words[5]
	}
	return c, question, idForm.MatchString(c.run) && idForm.MatchString(question) && len(c.user) <= maxWord
}

// answerer is the agent that answers under a subject; the server permits it to that agent only.
func answerer(subject string) string {
	if words := strings.Split(strings.TrimPrefix(subject, root), "."); len(words) > 3 {
		return strings.ReplaceAll(words[3], "/", ".")
	}
	return ""
}

// token makes a token of a name, which may have dots.
func token(name string) string { return strings.ReplaceAll(name, ".", "/") }

// userToken is the name of a NATS user in subjects. It keeps letters, digits, dashes and underscores, and has a slash
// for a dot, and a dash for all else.
func userToken(user string) string {
	made := strings.Map(func(c rune) rune {
		switch {
		case c == '.':
			return '/'
		case c < utf8.RuneSelf && (unicode.IsLetter(c) || unicode.IsDigit(c) || c == '-' || c == '_'):
			return c
		}
		return '-'
	}, user)
	if made = made[:min(len(made), maxWord)]; made == "" || made == itself {
		return "-"
	}
	return made
}

// Notes of an agent, apart from the output of its process.
const (
	notePrinted = "printed" // a line that its process has printed
	noteEnded   = "ended"   // how its process has ended; "" for by itself
)

// Presence is an agent's description of itself.
type Presence struct {
	Name    string            `json:"name"`
	Version string            `json:"version"`
	Labels  map[string]string `json:"labels,omitempty"`
	// Holder is the owner of the run it serves, since Since; "": it is free.
	Holder string    `json:"holder,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}

// request asks an agent for its time.
type request struct {
	Protocol int    `json:"protocol"`
	Holder   string `json:"holder"`
	// Stream is the last name in the subjects of both ends.
	Stream string `json:"stream"`
}

// grant is the answer: empty, or the holder of the agent, or the reason for a refusal.
type grant struct {
	Holder string    `json:"holder,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	Error  string    `json:"error,omitempty"`
}

// Limits of messages of agents and controllers.
const (
	// maxAgents is how many agents a lab has at most.
	maxAgents = 4096
	// longest bounds an agent's description of itself, maxLabels the number of its labels, maxWord a word of it.
	longest, maxLabels, maxWord = 16 << 10, 64, 128
)

var (
	nameForm = regexp.MustCompile(lab.NameForm)
	idForm   = regexp.MustCompile(`^[0-9A-Z]{26}$`)
)

// CheckName validates a name of an agent.
func CheckName(name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf(
			"%.80q cannot be the name of a host: it has letters, digits, dots and dashes, at most 63", name,
		)
	}
	return nil
}

// CheckLabels validates the labels of an agent.
func CheckLabels(labels map[string]string) error {
	if len(labels) > maxLabels {
		return fmt.Errorf("%d labels are too many: at most %d", len(labels), maxLabels)
	}
	for name, value := range labels {
		for _, word := range []string{name, value} {
			if len(word) > maxWord || !utf8.ValidString(word) || printable.Line(word) != word {
				return fmt.Errorf(
					"%.80q cannot be of a label: at most %d bytes, which can be printed", word, maxWord,
				)
			}
		}
	}
	return nil
}

// newID draws an id that cannot be guessed.
func newID() string { return rand.Text() }

// parsePresence parses an agent's description of itself.
func parsePresence(said []byte) (p Presence, err error) {
	if len(said) > longest {
		return p, fmt.Errorf("the self-description of an agent has %d bytes", len(said))
	}
	if err := json.Unmarshal(said, &p); err != nil {
		return p, fmt.Errorf("invalid self-description of an agent: %s", lab.Text(err.Error()))
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
	printable.Each(&g, lab.Text)
	return g, nil
}

// parseRequest reads what a controller asks.
func parseRequest(said []byte) (r request, err error) {
	if len(said) > longest {
		return r, fmt.Errorf("the request has %d bytes", len(said))
	}
	if err := json.Unmarshal(said, &r); err != nil {
		return r, fmt.Errorf("the request cannot be read: %s", lab.Text(err.Error()))
	}
	if r.Holder = lab.Text(r.Holder); r.Holder == "" || !idForm.MatchString(r.Stream) {
		return r, fmt.Errorf("the request is not valid")
	}
	if r.Protocol != lab.Protocol {
		return r, fmt.Errorf(
			"it speaks protocol %d, and this controller %d: install the same rdmarun on both", lab.Protocol, r.Protocol,
		)
	}
	return r, nil
}
