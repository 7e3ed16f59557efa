// Package ast checks the form of a scenario: known keys, the kinds of value they hold, one action a
// step.  It makes the tree of a File out of nodes; names and values are still nodes, which package
// compile reads.
package ast

import (
	"slices"

	"rdmarun/host/scenario/syntax"
)

// File is a scenario as written; its keys are in the order of the documentation.
type File struct {
	Root *syntax.Node

	Version    *syntax.Node   `key:"rdmarun" doc:"version of the language"`
	Name       *syntax.Node   `key:"name" doc:"what reports call it"`
	Doc        *syntax.Node   `key:"doc" doc:"what it is for"`
	Tags       []*syntax.Node `key:"tags" doc:"words to select by"`
	Timeout    *syntax.Node   `key:"timeout,any" doc:"time a case may take"`
	Stall      *syntax.Node   `key:"stall_timeout,any" doc:"time without an ended step after which a case counts as stuck"`
	Params     []*Param       `key:"params" doc:"parameters, set by -p"`
	Matrix     *Matrix        `key:"matrix" doc:"values that the file runs with, each combination"`
	Imports    []*Import      `key:"imports" doc:"files with fragments and fixtures, or standard ones such as std/cm, by the prefix of their use"`
	Requires   []*syntax.Node `key:"requires" doc:"conditions without which the file is skipped"`
	Provider   *Provider      `key:"provider" doc:"provider of the roles: soft, or verbs for an RDMA device, or settings of either: {soft: {link: packets}}. --provider and the provider of a role override it"`
	Defaults   *Defaults      `key:"defaults" doc:"default arguments of steps"`
	Roles      []*Role        `key:"roles" doc:"the roles of the cases"`
	Needs      []*syntax.Node `key:"needs" doc:"fixtures that each case needs, in addition to its own: NAME, or of an imported file PREFIX.NAME"`
	Setup      []*Step        `key:"setup" doc:"steps before the steps of each case"`
	Steps      []*Step        `key:"steps" doc:"the only case"`
	Cases      []*Case        `key:"cases" doc:"several cases"`
	Finally    []*Step        `key:"finally" doc:"steps after those of each case, also after a failure. With several processes (--role) each runs those of its roles, without waiting for others"`
	Fragments  []*Fragment    `key:"fragments" doc:"steps to use in several places"`
	Fixtures   []*Fixture     `key:"fixtures" doc:"what cases need, by name: each is set up before the steps of a case that needs it, and torn down after them"`
	Thresholds []*Threshold   `key:"thresholds" doc:"limits on what the cases measure. Each applies to the cases that measure it"`
}

// Import is another file with fragments and fixtures, which are used under a prefix.
type Import struct {
	Name *syntax.Node // the key
	Path *syntax.Node
}

// Provider is what the roles of a file run on, or one role.
type Provider struct {
	// Name is a provider's: the word, or of a role the key of its settings; nil for a file that has settings alone.
	Name  *syntax.Node
	Soft  *Soft
	Verbs *Verbs
}

// Soft is how the soft provider is opened.
type Soft struct {
	Clock *syntax.Node `key:"clock" doc:"virtual or wall. The default is wall for files with guests or several providers and on the link udp, else virtual"`
	Seed  *syntax.Node `key:"seed" doc:"of random numbers: PSNs, keys, losses"`
	Legal *syntax.Node `key:"legal" doc:"SEED: behave now and then as a device may and rarely does; SEED:NAME,NAME=RATE: only in these ways, and once in RATE times (rdmarun explain legal). --legal sets another default"`
	Link  *syntax.Node `key:"link" doc:"local (default): a message is copied at once. packets: messages are packets of the path MTU, which take time and can be lost. udp: such packets in UDP sockets, in real time. --link sets another default"`
}

// Verbs is how the verbs provider is used.
type Verbs struct {
	Device *syntax.Node `key:"device" doc:"the RDMA device of roles that name none"`
}

// Defaults are arguments for steps that do not give them.
type Defaults struct {
	QueuePair *syntax.Node
	Within    *syntax.Node
	// Verbs are mappings of arguments by verb.
	Verbs []syntax.Pair
}

// Param is a parameter of a file or of a fragment.
type Param struct {
	Name *syntax.Node // the key

	Type    *syntax.Node   `key:"type,required" doc:"int, size, duration, rate, sizes, string, enum, bool, role; in fragments also map"`
	Default *syntax.Node   `key:"default,any" doc:"the value when none is given"`
	Min     *syntax.Node   `key:"min" doc:"smallest value"`
	Max     *syntax.Node   `key:"max" doc:"largest value"`
	Values  []*syntax.Node `key:"values,later" doc:"the words of an enum"`
	Doc     *syntax.Node   `key:"doc" doc:"what it is"`
	// Untyped is set if there is no such type, which has been reported: any value may be meant.
	Untyped bool
}

// CountHosts is the count of a role that has a party on each of its hosts.
const CountHosts = "hosts"

// Role is one party.
type Role struct {
	Name *syntax.Node // the key

	Buffers []*Buffer    `key:"buffers,later" doc:"registered memory"`
	Count   *syntax.Node `key:"count" doc:"number of instances of the role, client[0], client[1]..., each with its own buffers, endpoints and guest. They execute a step of the role one after another; in parallel, at the same time. hosts: one on each host of the lab for the role, two without a lab"`
	// Provider comes before the file's.
	Provider *Provider      `key:"provider" doc:"provider of this role, instead of the provider of the file: soft, verbs, {soft: {link: packets}}, {verbs: {device: mlx5_0}}. Roles with the same settings share one. A case with several uses wall-clock time"`
	Device   *syntax.Node   `key:"device" doc:"name of the RDMA device; without it the provider's default"`
	Port     *syntax.Node   `key:"port" doc:"of the device; without it the first that rdma_cm reaches"`
	GID      *syntax.Node   `key:"path,later" doc:"which of the port's addresses is the role's: {gid: index or IP address}"`
	CPUs     []*syntax.Node `key:"cpu,later" doc:"CPUs of the threads of its measurements and of its guest: a number, a list, or local_numa, the CPUs near its device"`
	// Spread is set if each instance runs on a host of its own.
	Spread *syntax.Node `key:"place,later" doc:"{spread: host}: each instance of a counted role runs on a host of its own, or the case is skipped"`
	// Labels are a mapping of names to texts.
	Labels []syntax.Pair `key:"labels,later" doc:"groups of its instances: {rack: r1}. A mesh reports the labels that bad pairs have in common. For a counted role a label may use the number: {rack: \"r$(index % 2)\"}"`
	Guest  *Guest        `key:"guest" doc:"the WebAssembly program that plays the role"`
	// Program is a list of words in its short form.
	Program *Program `key:"program" doc:"the native program that plays the role: [ib_send_bw, -R], or a mapping with that as its command"`
	// Optional guests may be missing.
	Optional *syntax.Node `key:"optional" doc:"true: the guest may be missing; cases that require guest.NAME are skipped then"`
}

// Buffer is registered memory of a role.
type Buffer struct {
	Name *syntax.Node // the key

	Size    *syntax.Node   `key:"size,required" doc:"bytes"`
	Access  []*syntax.Node `key:"access,empty" doc:"rights: LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE... By default, or with [], only the owner may read it"`
	Backing *syntax.Node   `key:"backing" doc:"kind of memory: anonymous (default: pages of its own), huge (huge pages; skipped if too few are free) or heap (malloc)"`
	Fill    *syntax.Node   `key:"fill,any" doc:"initial contents (default: zeros), as the verb fill writes them: {text: ..}, {hex: ..}, {byte: ..}, {fields: ..}"`
}

// Guest is the program that plays a role.
type Guest struct {
	Module *syntax.Node   `key:"module" doc:"the file, relative to the scenario: a module (.wasm), or a script in JavaScript (.js)"`
	Script *syntax.Node   `key:"script" doc:"instead of a file, a script in JavaScript, usually as a block: script: |"`
	Args   []*syntax.Node `key:"args,empty" doc:"its arguments"`
	// Env and Files are mappings; their values and Stdin are texts, or mappings with the keys of inputKeys.
	Env    []syntax.Pair `key:"env,later" doc:"its whole environment: {LEVEL: debug}"`
	Stdin  *syntax.Node  `key:"stdin,any" doc:"its standard input (default: empty): a text, or a file in the folder of the scenario, {file: ..}"`
	Files  []syntax.Pair `key:"files,later" doc:"the only files that it may read: {/etc/peer.conf: text, /data/keys: {file: keys.txt}}"`
	Allow  *Allow        `key:"allow" doc:"the only things that it may do (default: everything that guests can). Other calls fail with EPERM"`
	Limits Limits        `key:"limits" doc:"limits of what it may use"`
	// Deterministic guests do the same each time.
	Deterministic *syntax.Node `key:"deterministic" doc:"true: a run with the same --seed repeats exactly. Its clocks are virtual, its date begins at 2000-01-01, and its random numbers come from the seed of the run"`
}

// Program is a native program that plays a role.
type Program struct {
	Command []*syntax.Node `key:"command,required" doc:"the program and its arguments. The program is a name that is found in PATH, or a path relative to the scenario"`
	// Env and Files are mappings; their values and Stdin are as those of a guest.
	Env     []syntax.Pair `key:"env,later" doc:"variables of its environment, in addition to those of rdmarun: {UCX_TLS: rc}"`
	Stdin   *syntax.Node  `key:"stdin,any" doc:"begin of its standard input: a text, or a file in the folder of the scenario, {file: ..}. Steps can write more"`
	Files   []syntax.Pair `key:"files,later" doc:"files in its working folder: {peer.conf: text, keys.txt: {file: keys.txt}}"`
	Folder  *syntax.Node  `key:"cwd" doc:"its working folder, relative to the scenario (default: a new folder, which is removed after the case)"`
	User    *syntax.Node  `key:"user" doc:"name or number of the user that it runs as (default: the same user). This needs root, and opens the fabric of the case to all users of the host"`
	Timeout *syntax.Node  `key:"timeout,any" doc:"how long it may run (default: as long as the case). Then it gets SIGTERM, and 2 s later SIGKILL"`
	Output  *syntax.Node  `key:"output" doc:"bytes that it may print; 16MiB by default"`
	Trace   *syntax.Node  `key:"trace,any" doc:"true: each of its calls of libibverbs and librdmacm is a line of its output, 10000 lines at most. Or names of calls and groups, as rdmarun trace -e has them: [connection, ibv_modify_qp], or ['!poll'] for all others"`
}

// Allow is what a guest may do.
type Allow struct {
	// Node has the keys that are there: an empty list allows nothing.
	Node *syntax.Node

	Bind    []*syntax.Node `key:"bind,empty" doc:"addresses and ports where it may listen, and from which it may connect if it chooses the port: [127.0.0.1:7471, '10.0.0.0/8:7000-7999', '*:7471']"`
	Connect []*syntax.Node `key:"connect,empty" doc:"addresses and ports that it may connect to and send datagrams to: ['10.0.0.0/8:*', '[::1]:7471']"`
	Devices []*syntax.Node `key:"devices,empty" doc:"names of the devices that it may use: [soft0]"`
	Calls   []*syntax.Node `key:"calls,empty" doc:"groups of functions that it may call: device, cm, memory, work, sync. limits has the numbers of objects and bytes"`
}

// Limits are what a guest may take.
type Limits struct {
	Time       *syntax.Node `key:"time" doc:"wall-clock time"`
	Memory     *syntax.Node `key:"memory" doc:"its memory of the host in all: its linear memory, its tables, its RDMA objects with their rings and events; 256MiB by default"`
	Registered *syntax.Node `key:"registered" doc:"bytes of its memory regions together; 16GiB by default"`
	Handles    *syntax.Node `key:"handles" doc:"objects of all kinds; 131072 by default"`
	Files      *syntax.Node `key:"files" doc:"file descriptors that its event channels and CQs have; 4096 by default"`
	Ports      *syntax.Node `key:"ports" doc:"ports that its endpoints have; 4096 by default"`
	Output     *syntax.Node `key:"output" doc:"bytes of its standard streams and its log together; 1GiB by default"`
}

// Case is one named test of a file.
type Case struct {
	Name     *syntax.Node   `key:"name,required" doc:"what reports call it"`
	Tags     []*syntax.Node `key:"tags" doc:"words to select by"`
	Timeout  *syntax.Node   `key:"timeout,any" doc:"time it may take"`
	Matrix   *Matrix        `key:"matrix" doc:"values that it runs with, each combination"`
	Requires []*syntax.Node `key:"requires" doc:"conditions without which it is skipped"`
	Needs    []*syntax.Node `key:"needs" doc:"fixtures that are set up before it and torn down after it: NAME, or of an imported file PREFIX.NAME"`
	XFail    *XFail         `key:"xfail" doc:"whether and when it is known to fail"`
	// Thresholds are added to those of the file.
	Thresholds []*Threshold `key:"thresholds" doc:"limits on what this case measures, in addition to those of the file"`
	Steps      []*Step      `key:"steps,required" doc:"what happens"`
}

// XFail marks a case that is known to fail.
type XFail struct {
	When   *syntax.Node `key:"when" doc:"a condition; without it always"`
	Reason *syntax.Node `key:"reason,required" doc:"the reason, or where it is written"`
	// Raises is a mapping of what the failure is; nil: any.
	Raises *syntax.Node `key:"raises,later" doc:"the expected failure (default: any): {action: poll, what: wrong status, got: {re: RNR}}. Any other failure fails the case"`
}

// Fragment is a list of steps with parameters.
type Fragment struct {
	Name *syntax.Node // the key

	Params []*Param     `key:"params,later" doc:"parameters, given by \"with\""`
	Doc    *syntax.Node `key:"doc,any" doc:"what it is for"`
	Steps  []*Step      `key:"do,required" doc:"the steps"`
}

// Fixture is what cases need: steps that make it, and steps that end it.
type Fixture struct {
	Name *syntax.Node // the key

	Doc      *syntax.Node   `key:"doc,any" doc:"what it is for"`
	Scope    *syntax.Node   `key:"scope" doc:"case (default): each case has its own. file: cases of the file share one, while they pass and leave it unchanged. run: cases of all files that import it share one in the same way"`
	Needs    []*syntax.Node `key:"needs" doc:"fixtures that are set up before this one"`
	Setup    []*Step        `key:"setup,required" doc:"steps that make it; a case in which they fail is an error, not a failure"`
	Teardown []*Step        `key:"teardown" doc:"steps that end it, also after a failure. Each is tried. What they leave is freed with the case"`
}

// Threshold is a limit on a metric.
type Threshold struct {
	Metric *syntax.Node   `key:"metric,required" doc:"what is measured: duration, loop{name=..}, latency{test=..,size>=64KiB}, bandwidth{..}, connect{..}, connect_rate{..}. A threshold applies to the cases that have such a step, with any size"`
	Pass   []*syntax.Node `key:"pass,required" doc:"conditions that must hold: p99 < 4us, avg >= 0.9 * line_rate, avg >= baseline.avg * 0.97"`
	If     *syntax.Node   `key:"if" doc:"a condition, which may name values of the matrices. If it is false, the threshold is skipped"`
	// Abort is `true`, or a mapping; nil: nothing ends early.
	Abort *syntax.Node `key:"abort_on_fail,later" doc:"true, or {after: 2s}: end a running measurement when the limit is exceeded"`
}

// The scopes of fixtures.
const (
	scopeCase = "case"
	scopeFile = "file"
	ScopeRun  = "run"
)

// Scopes are the scopes of fixtures, the narrowest first.
func Scopes() []string { return []string{scopeCase, scopeFile, ScopeRun} }

// Width is the index of the fixture's scope among Scopes.
func (f *Fixture) Width() int {
	if f.Scope == nil {
		return 0
	}
	return max(0, slices.Index(Scopes(), f.Scope.Value))
}

// Shared reports whether cases share the fixture.
func (f *Fixture) Shared() bool { return f.Width() > 0 }

// The sections of a file.
var (
	fileSection      = sectionOf[File]("a file")
	softSection      = sectionOf[Soft]("soft")
	verbsSection     = sectionOf[Verbs]("verbs")
	paramSection     = sectionOf[Param]("a parameter")
	roleSection      = sectionOf[Role]("a role")
	bufferSection    = sectionOf[Buffer]("a buffer")
	guestSection     = sectionOf[Guest]("a guest")
	programSection   = sectionOf[Program]("a program")
	allowSection     = sectionOf[Allow]("allow")
	limitSection     = sectionOf[Limits]("limits")
	caseSection      = sectionOf[Case]("a case")
	xfailSection     = sectionOf[XFail]("xfail")
	fragmentSection  = sectionOf[Fragment]("a fragment")
	fixtureSection   = sectionOf[Fixture]("a fixture")
	thresholdSection = sectionOf[Threshold]("a threshold")
	stepSection      = sectionOf[Step]("a step")
)

// The keys of mappings that stay nodes.
var (
	defaultsKeys = []Key{
		{"qp", "queue pair attributes"},
		{"within", "how long waiting verbs wait. Other keys are verbs with default arguments"},
	}
	matrixKeys = []Key{
		{
			excludeKey,
			"combinations, also partial ones, that are left out: [{depth: 0, grant: 1}]; each other key is a name " +
				"with the list of its values",
		},
	}
	inputKeys = []Key{
		{"file", "a file in the folder of the scenario or below, which packs and labs bring along; 16MiB at most"},
		{"text", "a text, as one without a key"},
	}
	raisesKeys = []Key{
		{"action", "the verb or action that fails, as reports have it before the colon"},
		{
			"what",
			"what reports say behind it: wrong status, no event, it failed.. - a text, or a matcher of one; a " +
				"threshold: {prefix: threshold failed}",
		},
		{"got", "what came instead, as reports show it behind got: a text, or a matcher of one"},
	}
	providerKeys = []Key{{"soft", "settings of the soft provider"}, {"verbs", "settings of the verbs provider"}}
	abortKeys    = []Key{{"after", "how long a measurement runs before it may be ended; default 1s"}}
	pathKeys     = []Key{{"gid", "an index of the GID table, or an IP address"}}
	placeKeys    = []Key{{"spread", "host: no two instances on one"}}
	tookKeys     = []Key{{"min", "at least"}, {"max", "at most"}}
	repeatKeys   = []Key{
		{"times", "how many rounds there are at most"},
		{
			"for",
			"how long rounds begin, by the provider's clock or wall-clock time, whichever ends first. A round " +
				"that has begun is completed",
		},
		{"until", "a condition after each round, which ends the repeat"},
		{
			"rate",
			"how many rounds are due in a second, 1000/s, however long one takes (an open load). A round that is " +
				"due before the previous one ends is late, and begins at once afterwards. Rounds that have not " +
				"begun when the time of for: is over are dropped. A named repeat counts the late and the dropped " +
				"rounds. The time of a round counts from when it was due",
		},
		{
			"stages",
			"parts that follow each other, each with a rate of its own, instead of for and rate: " +
				"[{for: 10s, rate: 10/s}, {for: 30s, to: 1000/s}]. A round is of the stage in which it is due. A " +
				"named repeat has results of each stage, with the tag 'stage'",
		},
	}
	rateStageKeys = []Key{
		{"for", "how long it takes"},
		{"name", "its tag (default: its number, from 1). A threshold chooses it by 'loop{stage=NAME}'"},
		{"rate", "rounds due in a second at its beginning, 10/s (default: the rate at the end of the stage before)"},
		{"to", "the rate at its end; it changes evenly in between (default: the rate at the beginning)"},
	}
)

// IsLibrary reports whether a file has only fragments and fixtures, and so nothing to run.
func (f *File) IsLibrary() bool {
	return f.Steps == nil && f.Cases == nil && len(f.Fragments)+len(f.Fixtures) > 0
}
