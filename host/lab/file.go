// Package lab describes the hosts of a run. It has the lab file, the role that each host plays, and the messages
// between a controller and its agents.
package lab

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"rdmarun/host/bounded"
	"rdmarun/host/bus/tunnel"
	"rdmarun/host/printable"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/syntax"
	"rdmarun/rdmacore"
)

// Lab is a lab file.
type Lab struct {
	// Hosts are in the order of the file; those of a range are one after another.
	Hosts []Host
	// Groups are the names of several hosts: "n" of n[01-40].
	Groups map[string][]string
	// Place maps roles to hosts.
	Place map[string]Placement
	// NATS is the URL of the server that agents have joined; "" where the file has none.
	NATS string
}

// Host is a host and how it is reached.
type Host struct {
	Name string
	// SSH is where the system's ssh client goes; nil: not by ssh.
	SSH *SSH
	// Join is the name of an agent that has joined the lab; "": none has.
	Join string
	// Command starts a program on the host; its name and arguments are appended.  Empty without SSH: it is this host.
	Command []string
	// Named is where the file names the first word that starts the agent, FILE:LINE:COLUMN; "" where it does not.
	Named string
	// Program is where rdmarun is on the host; empty: what is pushed there, or this program's own path.
	Program string
	// Push sends this program to the host.
	Push bool
	// Provider, Link and Devices are those of its roles, where the file sets them; the address is where others reach
	// them.
	Provider, Link string
	Devices        []string
	Address        netip.Addr
	Labels         map[string]string
	// Programs are patterns of the programs that its agent may run (CheckAllow); none: no program.
	Programs []string
	// Silence is how long its agent may answer nothing before the run does without it.
	Silence time.Duration
}

// DefaultSilence is that of a host for which the file has none.
const DefaultSilence = 15 * time.Second

// SSH are the arguments of ssh.
type SSH struct {
	Host, User string
	Port       int
	Options    []string // as its -o has them
}

// Local reports whether the host is the one of the controller.
func (h *Host) Local() bool { return h.SSH == nil && len(h.Command) == 0 && h.Join == "" }

// Placement is where a role is placed.
type Placement struct {
	// Hosts are names of hosts, or of ranges of them; Labels are what a host must have.
	Hosts  []string
	Labels map[string]string
	// PerHost is how many instances of a counted role a host has; 0: they are spread over all, in turns.
	PerHost int
	// named is where the role is in the file; the zero span is of Override.
	named, span diag.Span
}

// Where is where the file names the role, FILE:LINE:COLUMN; without a file, "the lab".
func (p Placement) Where() string {
	if p.named.Source == nil {
		return "the lab"
	}
	return fmt.Sprintf("%s:%d:%d", p.named.File(), p.named.Line, p.named.Column)
}

// Limits of a lab file.
const (
	maxHosts = 4096
	// fileVersion is the value of its key rdmarun.
	fileVersion = "lab/v1"
)

// Read reads a lab file.  What is wrong with it is in the list.
func Read(path string) (*Lab, *diag.List) {
	errors := &diag.List{}
	text, err := bounded.Read(path, syntax.MaxBytes+1)
	if err != nil {
		errors.Report(diag.Unreadable, diag.NewSource(path, nil).Start(), "the file cannot be read: %s", err)
		return nil, errors
	}
	return parse(path, text)
}

// parse is Read of the text of a file.
func parse(path string, text []byte) (*Lab, *diag.List) {
	r := &reader{errors: &diag.List{}}
	root := syntax.Parse(diag.NewSource(path, text), r.errors)
	if root == nil || !r.kind(root, syntax.Mapping, "a lab") {
		return nil, r.errors
	}
	if version := root.Get("rdmarun"); version == nil {
		r.errors.Report(diag.MissingKey, root.Span(), "a lab needs the key \"rdmarun\"").WithHint(
			"rdmarun: %s", fileVersion,
		)
	} else if version.Value != fileVersion {
		hint := "a lab file begins with rdmarun: " + fileVersion
		if root.Get("roles") != nil || root.Get("steps") != nil || root.Get("cases") != nil {
			hint = "this is a scenario; " + hint
		}
		r.errors.Report(diag.NotOneOf, version.Span(), "unsupported version of a lab file").WithHint(
			"%s", hint,
		)
		return nil, r.errors // the keys of an unknown version cannot be checked
	}
	r.keys(root, labKeys...)
	lab := &Lab{Groups: make(map[string][]string), Place: make(map[string]Placement)}
	var defaults Host
	if node := root.Get("defaults"); node != nil {
		r.host(node, &defaults, true)
	}
	if node := root.Get("nats"); node != nil && r.kind(node, syntax.Scalar, "nats") {
		if lab.NATS = node.Value; tunnel.Check(lab.NATS) != nil {
			r.errors.Report(diag.WrongType, node.Span(), "%s", tunnel.Check(lab.NATS)).WithHint(
				"for example: nats://lab.example:4222",
			)
		}
	}
	r.hosts(root.Get("hosts"), root, defaults, lab)
	r.place(root.Get("place"), lab)
	return lab, r.errors
}

var labKeys = []string{"rdmarun", "nats", "defaults", "hosts", "place"}

// reader collects what is wrong with a lab file.
type reader struct{ errors *diag.List }

func (r *reader) kind(node *syntax.Node, kind syntax.Kind, what string) bool {
	if node.Kind != kind {
		r.errors.Report(diag.WrongShape, node.Span(), "%s must be a %s, and this is a %s", what, kind, node.Kind)
	}
	return node.Kind == kind
}

func (r *reader) keys(node *syntax.Node, known ...string) {
	for _, pair := range node.Pairs {
		if !slices.Contains(known, pair.Key.Value) {
			r.errors.Report(diag.UnknownKey, pair.Key.Span(), "unknown key %q", pair.Key.Value).WithOneOf(
				pair.Key.Value, known,
			)
		}
	}
}

// words are the scalars of a list, or a scalar alone.
func (r *reader) words(node *syntax.Node, what string) (words []string) {
	items := node.Items
	if node.Kind == syntax.Scalar {
		items = []*syntax.Node{node}
	}
	if node.Kind == syntax.Mapping || len(items) == 0 {
		r.errors.Report(diag.WrongShape, node.Span(), "%s must be a word or a list of words", what)
	}
	for _, item := range items {
		if r.kind(item, syntax.Scalar, "an item of "+what) {
			words = append(words, item.Value)
		}
	}
	return words
}

func (r *reader) number(node *syntax.Node, what string, least, most int) int {
	number, err := strconv.Atoi(node.Value)
	if node.Kind != syntax.Scalar || err != nil || number < least || number > most {
		r.errors.Report(diag.WrongType, node.Span(), "%s is a number from %d to %d", what, least, most)
		return least
	}
	return number
}

func (r *reader) flag(node *syntax.Node, what string) bool {
	value, err := strconv.ParseBool(node.Value)
	if node.Kind != syntax.Scalar || err != nil {
		r.errors.Report(diag.WrongType, node.Span(), "%s is true or false", what)
	}
	return value
}

func (r *reader) texts(node *syntax.Node, what string) map[string]string {
	if !r.kind(node, syntax.Mapping, what) {
		return nil
	}
	texts := make(map[string]string)
	for _, pair := range node.Pairs {
		if r.kind(pair.Value, syntax.Scalar, what+" "+pair.Key.Value) {
			texts[pair.Key.Value] = pair.Value.Value
		}
	}
	return texts
}

var (
	hostKeys = []string{
		"ssh", "command", "join", "local", "rdmarun", "push", "provider", "link", "device", "devices", "address",
		"labels", "silence", "programs",
	}
	sshKeys = []string{"host", "user", "port", "options"}
)

// position is where a node is, for messages.
func position(node *syntax.Node) string {
	return fmt.Sprintf("%s:%d:%d", node.Source.Name, node.Position.Line, node.Position.Column)
}

// host reads a host, over the defaults of all.
func (r *reader) host(node *syntax.Node, h *Host, defaults bool) {
	if !r.kind(node, syntax.Mapping, "a host") {
		return
	}
	r.keys(node, hostKeys...)
	pushes := false
	for _, pair := range node.Pairs {
		value := pair.Value
		if pair.Key.Value != "command" { // its words may be scripts of many lines
			r.plain(value)
		}
		switch pair.Key.Value {
		case "ssh":
			r.ssh(value, h, defaults)
		case "command":
			h.Command, h.Named = r.words(value, "command"), position(value)
		case "join":
			h.Join = value.Value
			if defaults || value.Kind != syntax.Scalar || h.Join == "" {
				r.errors.Report(diag.WrongType, value.Span(), "join is the name of one host's agent")
			}
		case "local":
			if !r.flag(value, "local") {
				r.errors.Report(diag.WrongType, value.Span(), "a host that is not local has ssh or command")
			}
		case "rdmarun":
			if h.Program = value.Value; strings.HasPrefix(h.Program, "-") { // a launcher's option
				r.errors.Report(diag.WrongType, value.Span(), "%q is not a path of a program", h.Program)
			}
			if len(h.Command) == 0 {
				h.Named = position(value)
			}
		case "push":
			h.Push, pushes = r.flag(value, "push"), true
		case "provider":
			if h.Provider = value.Value; !slices.Contains(rdmacore.Providers(), value.Value) {
				r.errors.Report(diag.NotOneOf, value.Span(), "there is no provider %q", value.Value).WithOneOf(
					value.Value, rdmacore.Providers(),
				)
			}
		case "link":
			if h.Link = value.Value; !slices.Contains(rdmacore.Links(), value.Value) {
				r.errors.Report(diag.NotOneOf, value.Span(), "there is no link %q", value.Value).WithOneOf(
					value.Value, rdmacore.Links(),
				)
			}
		case "device", "devices":
			h.Devices = r.words(value, pair.Key.Value)
		case "address":
			address, err := netip.ParseAddr(value.Value)
			if err != nil && !rangeForm.MatchString(value.Value) {
				r.errors.Report(diag.WrongType, value.Span(), "%q is not an IP address", value.Value)
			}
			h.Address = address.Unmap()
		case "programs":
			h.Programs = r.words(value, "programs")
			for i, pattern := range h.Programs {
				if err := CheckAllow(programPrefix + pattern); err != nil {
					r.errors.Report(
						diag.WrongType, value.Items[i].Span(), "%q is not an absolute path of programs", pattern,
					).
						WithHint("programs: [\"/usr/bin/ib_*\"]")
				}
			}
		case "silence":
			silence, problem := quantity.ParseTime(value.Value)
			if problem == nil && (value.Kind != syntax.Scalar || silence < time.Second || silence > time.Hour) {
				problem = diag.Wrong(diag.WrongType, "silence is a time from 1s to 1h", "")
			}
			if problem != nil {
				r.errors.Report(problem.Code, value.Span(), "%s", problem.Message)
			}
			h.Silence = silence
		case "labels":
			if h.Labels = maps.Clone(h.Labels); h.Labels == nil {
				h.Labels = make(map[string]string)
			}
			maps.Copy(h.Labels, r.texts(value, "labels"))
		}
	}
	ways := []string{"ssh", "command", "join"}
	for i, way := range ways {
		for _, other := range ways[i+1:] {
			if node.Get(way) != nil && node.Get(other) != nil {
				r.errors.Report(diag.WrongShape, node.Key(other).Span(), "a host has %s or %s, not both", way, other)
			}
		}
	}
	for _, key := range []string{"rdmarun", "push", "programs"} {
		if node.Get("join") != nil && node.Get(key) != nil {
			r.errors.Report(
				diag.WrongShape, node.Key(key).Span(),
				"the agent of a host that has joined runs already, as its owner started it: nothing needs %q", key,
			)
		}
	}
	if h.SSH != nil && !pushes && !defaults && h.Program == "" {
		h.Push = true
	}
}

func (r *reader) ssh(node *syntax.Node, h *Host, defaults bool) {
	ssh := SSH{}
	if h.SSH != nil {
		ssh = *h.SSH
	}
	h.SSH = &ssh
	if node.Kind == syntax.Scalar && !defaults {
		host := node.Value
		if at := strings.LastIndexByte(host, '@'); at >= 0 {
			ssh.User, host = host[:at], host[at+1:]
			r.sshWord(node, ssh.User, "user")
		}
		ssh.Host = host
		r.sshWord(node, host, "host")
		return
	}
	if !r.kind(node, syntax.Mapping, "ssh") {
		return
	}
	r.keys(node, sshKeys...)
	for _, pair := range node.Pairs {
		switch value := pair.Value; pair.Key.Value {
		case "host":
			ssh.Host = value.Value
			r.sshWord(value, ssh.Host, "host")
		case "user":
			ssh.User = value.Value
			r.sshWord(value, ssh.User, "user")
		case "port":
			ssh.Port = r.number(value, "port", 1, 65535)
		case "options":
			ssh.Options = r.words(value, "options")
		}
	}
	if ssh.Host == "" && !defaults && !diag.Misspelled("host", node.Keys(), sshKeys) {
		r.errors.Report(diag.MissingKey, node.Span(), "ssh needs the key \"host\"")
	}
}

// sshForm reports whether a word may be a host, an address or a user. ssh takes none for an option, and no shell
// anything for more than a word. (No regular expression: one of Unicode's letters 255 times takes 13 ms and 10 MB to
// compile, at each start of rdmarun.)
func sshForm(word string) bool {
	first, _ := utf8.DecodeRuneInString(word)
	return word != "" && utf8.RuneCountInString(word) <= 255 && !strings.ContainsRune(`.%+]\-`, first) &&
		!strings.ContainsFunc(word, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune(`._:%+[]\-`, r)
		})
}

func (r *reader) sshWord(node *syntax.Node, word, of string) {
	if !sshForm(word) {
		r.errors.Report(diag.WrongType, node.Span(), "%.80q is not a name of a %s", word, of)
	}
}

// maxWord bounds a word of a lab file, in bytes.
const maxWord = 4096

// plain refuses words with anything that cannot be printed in a line: reports, and commands to be typed, contain them.
func (r *reader) plain(node *syntax.Node) {
	if node == nil {
		return
	}
	if len(node.Value) > maxWord || strings.ContainsRune(node.Value, '\t') ||
		printable.Line(node.Value) != node.Value {
		r.errors.Report(
			diag.WrongType, node.Span(), "a word here has at most %d bytes, which can be printed in a line",
			maxWord,
		)
	}
	for _, pair := range node.Pairs {
		r.plain(pair.Key)
		r.plain(pair.Value)
	}
	for _, item := range node.Items {
		r.plain(item)
	}
}

// NameForm is that of a host.
const NameForm = `^[A-Za-z0-9]([A-Za-z0-9._-]{0,62})$`

var nameForm = regexp.MustCompile(NameForm)

// hosts reads the hosts, ranges as so many.
func (r *reader) hosts(node, root *syntax.Node, defaults Host, lab *Lab) {
	if node == nil {
		if !diag.Misspelled("hosts", root.Keys(), labKeys) {
			r.errors.Report(diag.MissingKey, root.Span(), "a lab needs the key \"hosts\"")
		}
		return
	}
	if !r.kind(node, syntax.Mapping, "hosts") {
		return
	}
	known := make(map[string]bool)
	for _, pair := range node.Pairs {
		h := defaults
		if defaults.SSH != nil && pair.Value.Get("ssh") == nil {
			h.SSH = nil // a host without the key ssh is not reached by it
		}
		if pair.Value.Get("ssh") != nil || pair.Value.Get("join") != nil {
			h.Command, h.Named = nil, ""
		}
		if !pair.Value.IsNull() {
			r.host(pair.Value, &h, false)
		}
		h.Name = pair.Key.Value
		all, problem := expand(h, addressOf(pair.Value))
		if problem != "" {
			r.errors.Report(diag.WrongType, pair.Key.Span(), "%s", problem)
			continue
		}
		group, _, _ := strings.Cut(h.Name, "[")
		for _, each := range all {
			switch {
			case !nameForm.MatchString(each.Name):
				r.errors.Report(diag.BadName, pair.Key.Span(), "%q cannot be the name of a host", each.Name).
					WithHint("a name has letters, digits, dots and dashes, at most 63")
			case known[each.Name]:
				r.errors.Report(diag.BadName, pair.Key.Span(), "there are two hosts %q", each.Name)
			case each.Join != "" && !nameForm.MatchString(each.Join): // it is a part of a subject of NATS
				r.errors.Report(diag.BadName, pair.Key.Span(), "%.80q cannot be the name of an agent", each.Join).
					WithHint("a name has letters, digits, dots and dashes, at most 63")
			case each.Join != "" && lab.joined(each.Join) != nil:
				r.errors.Report(
					diag.BadName, pair.Key.Span(), "hosts %s and %s are one agent, %q", lab.joined(each.Join).Name,
					each.Name, each.Join,
				)
			case len(lab.Hosts) >= maxHosts:
				r.errors.Report(diag.WrongType, pair.Key.Span(), "a lab has at most %d hosts", maxHosts)
				return
			}
			known[each.Name] = true
			lab.Hosts = append(lab.Hosts, each)
			if len(all) > 1 {
				lab.Groups[group] = append(lab.Groups[group], each.Name)
			}
		}
	}
	if len(lab.Hosts) == 0 && r.errors.Len() == 0 {
		r.errors.Report(diag.EmptyList, node.Span(), "there are no hosts here")
	}
}

func addressOf(node *syntax.Node) string {
	if address := node.Get("address"); address != nil {
		return address.Value
	}
	return ""
}

// rangeForm is a range in a name: node[01-40].
var rangeForm = regexp.MustCompile(`\[([0-9]+)-([0-9]+)\]`)

// expand makes one host of each number of a range. The range may be in the host's name, in its launcher's words and in
// its address. The digits keep their width.
func expand(h Host, address string) (all []Host, problem string) {
	fields := []string{h.Name, h.Join}
	if h.SSH != nil {
		fields = append(fields, h.SSH.Host)
	}
	fields = append(append(fields, h.Command...), address)
	count := 0
	for _, field := range fields {
		for _, match := range rangeForm.FindAllStringSubmatch(field, -1) {
			n := rangeLength(match)
			if n < 1 || n > maxHosts {
				problem := fmt.Sprintf(
					"%s is not a range of 1 to %d hosts, the smaller number first", match[0], maxHosts,
				)
				if turned := []string{"", match[2], match[1]}; rangeLength(turned) > 1 {
					problem += fmt.Sprintf(": write [%s-%s]", match[2], match[1])
				}
				return nil, problem
			}
			if count != 0 && n != count {
				return nil, fmt.Sprintf("the ranges of host %s differ in length", h.Name)
			}
			count = n
		}
	}
	if count == 0 {
		return []Host{h}, ""
	}
	for i := range count {
		each := h
		if each.Name = inRange(h.Name, i); each.Name == h.Name {
			each.Name += numberIn(fields, i)
		}
		each.Join, each.Command = inRange(h.Join, i), slices.Clone(h.Command)
		for j := range each.Command {
			each.Command[j] = inRange(each.Command[j], i)
		}
		if h.SSH != nil {
			ssh := *h.SSH
			ssh.Host = inRange(ssh.Host, i)
			each.SSH = &ssh
		}
		if text := inRange(address, i); text != "" {
			parsed, err := netip.ParseAddr(text)
			if err != nil {
				return nil, fmt.Sprintf("%q is not an IP address", text)
			}
			each.Address = parsed.Unmap()
		}
		all = append(all, each)
	}
	return all, ""
}

// ranged are the names of a range of hosts, or a name alone.
func ranged(word string) (names []string, problem string) {
	all, problem := expand(Host{Name: word}, "")
	for _, host := range all {
		names = append(names, host.Name)
	}
	return names, problem
}

func rangeLength(match []string) int {
	first, bad := strconv.Atoi(match[1])
	last, worse := strconv.Atoi(match[2])
	if bad != nil || worse != nil || last < first {
		return 0
	}
	return last - first + 1
}

// inRange replaces a range with the number at a place of the range.
func inRange(text string, i int) string {
	return rangeForm.ReplaceAllStringFunc(text, func(written string) string {
		match := rangeForm.FindStringSubmatch(written)
		first, _ := strconv.Atoi(match[1])
		return fmt.Sprintf("%0*d", len(match[1]), first+i)
	})
}

// numberIn is the number that the first range of several texts has at a place.
func numberIn(texts []string, i int) string {
	for _, text := range texts {
		if written := rangeForm.FindString(text); written != "" {
			return inRange(written, i)
		}
	}
	return ""
}
