package ast

// Key is a key of a mapping and what it is for.
type Key struct{ Name, Doc string }

// Language lists the keys of every mapping of a file, as the checker knows them.
type Language struct {
	File, Param, Defaults, Case, Fragment []Key
	Role, Buffer, Guest, Limits           []Key
	Path, Place                           []Key
	// Actions are the keys of which a step has one, beside the verbs; Modifiers all its other keys.
	Actions, Modifiers, Took []Key
	// ParamTypes are the types of parameters, those of fragments included.
	ParamTypes []string
}

// Mapping is a mapping of a file with its keys.
type Mapping struct {
	// Name is the word that it stands behind, Of what has the keys.
	Name, Of string
	Keys     []Key
}

// Mappings lists the mappings of a file, from the outermost to the innermost.
func Mappings() []Mapping {
	language := Keys()
	return []Mapping{
		{"file", "a file", language.File},
		{"params", "a parameter", language.Param},
		{"matrix", "a matrix", exported(matrixKeys)},
		{"provider", "provider", exported(providerKeys)},
		{"soft", "the soft provider", exported(softKeys)},
		{"defaults", "defaults", language.Defaults},
		{"roles", "a role", language.Role},
		{"buffers", "a buffer", language.Buffer},
		{"path", "path", language.Path},
		{"place", "place", language.Place},
		{"guest", "a guest", language.Guest},
		{"limits", "a guest's limits", language.Limits},
		{"cases", "a case", language.Case},
		{"xfail", "xfail", exported(xfailKeys)},
		{"raises", "the failure that xfail expects", exported(raisesKeys)},
		{"fragments", "a fragment", language.Fragment},
		{"thresholds", "a threshold", exported(thresholdKeys)},
		{"abort_on_fail", "abort_on_fail", exported(abortKeys)},
		{"action", "a step without a verb", language.Actions},
		{"step", "a step", language.Modifiers},
		{"took", "took", language.Took},
		{"type", "a parameter's type", exported(paramTypes)},
	}
}

// Keys returns the keys of the language.
func Keys() Language {
	language := Language{
		File: exported(fileKeys), Param: exported(paramKeys), Defaults: exported(defaultsKeys),
		Case: exported(caseKeys), Fragment: exported(fragmentKeys), Role: exported(roleKeys),
		Buffer: exported(bufferKeys), Guest: exported(guestKeys), Limits: exported(limitKeys),
		Path: exported(pathKeys), Place: exported(placeKeys), Took: exported(tookKeys), ParamTypes: fragmentParamTypes,
	}
	for _, a := range actions {
		language.Actions = append(language.Actions, Key{a.name, a.doc})
	}
	for _, m := range modifiers {
		language.Modifiers = append(language.Modifiers, Key{m.name, m.doc})
	}
	return language
}

func exported(keys []key) []Key {
	list := make([]Key, len(keys))
	for i, k := range keys {
		list[i] = Key{k.name, k.doc}
	}
	return list
}

// The keys of each mapping, with their documentation.  They stand in tables so that the checker, the JSON
// Schema and `rdmarun explain` cannot differ; those of files, parameters and steps stand beside what
// reads them.
var (
	defaultsKeys = []key{
		{"qp", "queue pair attributes"},
		{"within", "how long verbs wait that wait; beside these two keys stand verbs with default arguments"},
	}
	matrixKeys = []key{
		{excludeKey, "combinations, also partial ones, that are left out: [{depth: 0, grant: 1}]; each other key is a name with the list of its values"},
	}
	caseKeys = []key{
		{"name", "what reports call it"},
		{"tags", "words to select by"},
		{"timeout", "time it may take"},
		{"matrix", "values that it runs with, each combination"},
		{"requires", "conditions without which it is skipped"},
		{"xfail", "that and when it is known to fail"},
		{"thresholds", "limits on what this case measures, beside those of the file"},
		{"steps", "what happens"},
	}
	xfailKeys = []key{
		{"when", "a condition; without it always"},
		{"reason", "why, or where that is written"},
		{"raises", "which failure is expected, so that any other fails the case: {action: poll, what: wrong status, got: {re: RNR}}; without it any is"},
	}
	raisesKeys = []key{
		{"action", "the verb or action that fails, as reports have it before the colon"},
		{"what", "what reports say behind it: wrong status, no event, it failed.. - a text, or a matcher of one; a threshold: {prefix: threshold not held}"},
		{"got", "what came instead, as reports show it behind got: a text, or a matcher of one"},
	}
	providerKeys = []key{
		{"soft", "settings of the soft provider"},
	}
	softKeys = []key{
		{"clock", "virtual or wall"},
		{"seed", "of random numbers: PSNs, keys, losses"},
	}
	thresholdKeys = []key{
		{"metric", "what is measured: duration, loop{name=..}, latency{test=..,size>=64KiB}, bandwidth{..}, connect{..}, connect_rate{..}; a threshold concerns the cases that have a step measured so, whatever its size"},
		{"pass", "conditions that must hold: p99 < 4us, avg >= 0.9 * line_rate, avg >= baseline.avg * 0.97"},
		{"if", "a condition, which may name values of the matrices; where it does not hold, the threshold is left out"},
		{"abort_on_fail", "true, or {after: 2s}: end a running measurement when it does not hold any more"},
	}
	abortKeys = []key{
		{"after", "how long a measurement runs before it may be ended; default 1s"},
	}
	fragmentKeys = []key{
		{"params", "parameters, given by \"with\""},
		{"doc", "what it is for"},
		{"do", "the steps"},
	}
	roleKeys = []key{
		{"buffers", "registered memory"},
		{"count", "how many parties play the role, each with its own buffers, endpoints and guest: client[0], client[1]..."},
		{"device", "name of the RDMA device; without it the provider's default"},
		{"port", "of the device; without it the first that rdma_cm reaches"},
		{"path", "which of the port's addresses is the role's: {gid: index or IP address}"},
		{"cpu", "where the threads of its measurements and of its guest run: a number, a list, or local_numa, the CPUs near its device"},
		{"place", "{spread: host}: the instances of a counted role run on as many hosts, or the case is skipped"},
		{"guest", "the WebAssembly program that plays the role"},
		{"optional", "true: the guest may be missing; cases that require guest.NAME are skipped then"},
	}
	bufferKeys = []key{
		{"size", "bytes"},
		{"access", "rights: LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE...; [] or without it, only what every region allows: to be read by its owner"},
		{"backing", "what the memory is: anonymous (pages of its own, the default), huge (huge pages; skipped where too few are free) or heap (malloc)"},
		{"fill", "what it holds at first, as the verb fill writes it: {text: ..}, {hex: ..}, {byte: ..}, {fields: ..}; without it zeros"},
	}
	pathKeys = []key{
		{"gid", "an index of the GID table, or an IP address"},
	}
	placeKeys = []key{
		{"spread", "host: no two instances on one"},
	}
	guestKeys = []key{
		{"module", "the .wasm file, relative to the scenario"},
		{"args", "its arguments"},
		{"limits", "what it may take"},
	}
	limitKeys = []key{
		{"time", "wall-clock time"},
		{"memory", "all it takes of the host's memory: its linear memory, its tables, its RDMA objects with their rings and events; 256MiB unless said"},
		{"registered", "bytes of its memory regions together; 16GiB unless said"},
		{"handles", "objects of all kinds; 131072 unless said"},
		{"files", "file descriptors that its event channels and CQs have; 4096 unless said"},
		{"output", "bytes of its standard streams and its log together; 1GiB unless said"},
	}
	tookKeys = []key{
		{"min", "at least"},
		{"max", "at most"},
	}
)
