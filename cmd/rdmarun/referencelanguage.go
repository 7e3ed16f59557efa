package main

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/example"
)

// languageReference is the page of the scenario language: its tables, each with the examples of its words.
func languageReference() []byte {
	out := page("The scenario language", languageIntroduction)
	writeExample(out, example.Find("scenario"))
	shown := map[string]bool{"scenario": true}
	for _, part := range languageParts() {
		fmt.Fprintf(out, "\n## %s\n\n%s\n", part.title, part.text)
		for _, table := range languageTables() {
			if !slices.Contains(part.tables, table.name) {
				continue
			}
			fmt.Fprintf(out, "\n### %s\n\n| %s | |\n| --- | --- |\n", table.title, table.name)
			for _, word := range table.words {
				fmt.Fprintf(out, "| `%s` | %s |\n", cell(word.Name), cell(word.Doc))
			}
		}
		for _, word := range part.examples {
			if found := example.Find(word); found != nil && !shown[found.File+found.Title] {
				shown[found.File+found.Title] = true
				writeExample(out, found)
			}
		}
	}
	return out.Bytes()
}

func writeExample(out *bytes.Buffer, found *example.Example) {
	fmt.Fprintf(out, "\n```yaml\n%s```\n", found.Text)
	for _, name := range shownFiles(found.Beside) {
		fmt.Fprintf(out, "\nBeside it `%s`:\n\n```%s\n%s```\n", besideName(name), strings.TrimPrefix(path.Ext(name), "."), found.Beside[name])
	}
}

// languagePart is a section of the page: text, tables by the names of their topics, and words whose examples it shows.
type languagePart struct {
	title, text      string
	tables, examples []string
}

const languageIntroduction = `A scenario is a YAML file that says what several roles do, one step after another.  ` + "`rdmarun explain WORD`" + `
explains each word of this page and each verb ([verbs.md](verbs.md)) and shows a scenario with it;
` + "`rdmarun explain --example WORD`" + ` prints that scenario alone.  Every example here runs as it stands.

` + unexpected + `  A client and a server, with private data, a fault and a threshold:`

// timeTable has the times that explain shows at the words which they concern.
func timeTable() string {
	table := "| of | how long |\n| --- | --- |\n"
	for _, row := range timeRows() {
		table += fmt.Sprintf("| %s | %s |\n", cell(row[0]), cell(row[1]))
	}
	return strings.TrimSuffix(table, "\n")
}

func languageParts() []languagePart {
	return []languagePart{
		{"A file", "A file begins with `rdmarun: " + ast.Version + "`.  It has `steps`, which are one case, or `cases`; for each case the steps of " +
			"`setup` run before it and those of `finally` after it, also after a failure.  A file that has only `fragments` is a library, for `imports`.",
			[]string{"file", "provider", "soft", "defaults", "fragments"}, []string{"file", "imports"}},
		{"Standard fragments", "What most scenarios begin and end with needs no file: `imports: {cm: std/cm}`.  Roles are called server and client, endpoints ep and listener, " +
			"unless `with` says otherwise.  `rdmarun explain std/cm` shows the steps.",
			[]string{"std"}, []string{"std/cm", "cm.listen", "cm.request"}},
		{"Parameters", "A parameter is set by `-p NAME=VALUE`, by `--params FILE` or by the variable `RDMARUN_PARAM_NAME`; without a default it must be.",
			[]string{"params", "type"}, []string{"sizes"}},
		{"Roles", "The parties.  A role has registered memory, and endpoints that its steps make; or a WebAssembly program plays it, which has memory of its own.",
			[]string{"roles", "buffers", "path", "place", "guest", "limits"}, []string{"buffers", "guest", "function"}},
		{"Cases", "Each combination of a matrix is a case of its own; the values stand in its id, `faults.yaml::remote key violation[bad=past_end]`.  A case ends " +
			"as passed, failed, skipped (its requirements do not hold), or failed as known (xfail); one that was known to fail and passes has failed, and so has one that fails otherwise than `raises` of its xfail says.",
			[]string{"cases", "matrix", "xfail", "raises", "requirement"}, []string{"matrix", "requires", "xfail"}},
		{"Steps", "A step does one thing: a verb ([verbs.md](verbs.md)), or one of the actions below; its other keys say more about it.  Steps run one after another over " +
			"all roles: a step begins when the one before has ended.  Connections are asynchronous, as they are to programs: what becomes of a call is told by an event, for " +
			"which wait_event waits.  In a loop `as: \"eps[$(i)]\"` gives one of several a name: other steps say `ep: \"eps[2]\"`, or with an expression between the " +
			"brackets, and expressions `client.eps[2].port`.",
			[]string{"action", "step", "took"}, []string{"expect", "took", "leftovers", "do", "repeat", "as-several", "for_each", "parallel", "barrier", "tags"}},
		{"Expectations", "A call must succeed and a completion have status SUCCESS, unless `expect` says otherwise; it replaces only the fields that it names.  Fields are " +
			"the results of the verb, with a value or a matcher; several matchers of a field must all hold.  Of a call that must fail `expect: {errno: EINVAL}` is the " +
			"whole expectation; of a wait that must end without anything, `expect: {none: true}`.  `expect: any` takes " +
			"whatever comes - any status, any errno - but something must; without `expect` it would have to be a success.",
			[]string{"matcher"}, []string{"approx", "padded", "errno", "anything may come"}},
		{"Bytes", "Private data, and what fill and check write and compare, have one of these forms; `fill` and `check: {equals: ..}` have them as keys.  " +
			"fill repeats text, hex and byte to the end of a buffer's range; repeat and fields stand once.  check compares byte with every byte of the range, and other data with as many bytes as it has; with a length, it repeats data as fill does.  `decode` reads integers of the same names.  Private data arrives padded with zeros, as long as its message has room (56 bytes of a request, 196 of an acceptance, 148 of a refusal; iWARP pads nothing): compare it by `padded`, its beginning by `prefix`.",
			[]string{"data", "integer"}, []string{"fields", "host64"}},
		{"Expressions", "`$(..)` is an expression, anywhere in a value; assert, if, when and requires are expressions without it.  In flow style an expression with a comma, a bracket or a " +
			"quote needs quotes around the value.  Numbers, texts ('..' or \"..\"), true, false, nil, lists [1, 2], mappings {'a': 1}, sizes (4KiB) and " +
			"durations (655.36ms) are values.  A size is a number; durations add up and compare with durations, and a number times a duration is one.",
			[]string{"name", "operator", "function", "unit"}, []string{"ROLE.BUFFER.addr", "+", "KiB", "abs", "split", "filter", "date"}},
		{"Faults", "`fault` breaks the way between two roles, or their device, until heal or the end of the case; only soft can.  drop says what is concerned: " +
			"all; data, the packets of queue pairs; cm, all messages of the connection manager; or one kind of them by its name, which `rdmarun explain message` lists.  action says what happens to it.",
			nil, []string{"fault", "REQ", "directed", "duplicate", "kill", "removal", "RNR_RETRY_EXC_ERR"}},
		{"Times", "How long until somebody gives up, or tries again: `within` must be longer, and `took` can ask for just that.  They are soft's to the microsecond, and " +
			"Linux's on RoCE; the manager of an InfiniBand subnet and later kernels may give packets another lifetime.\n\n" + timeTable(),
			nil, []string{"times", "REP", "RTU", "DREQ"}},
		{"Measurements and thresholds", "A threshold compares fields of a metric with constants, which have units, or expressions.  " +
			"Between braces stands what chooses among several: tags of the step, its name, the size.  A threshold of the file concerns each case that has a step measured so - a metric with these " +
			"tags, of whatever size, also in a fragment - and no other; one of a case, that case.  Both may name values of the case's matrix.  Where such a step stands and there is no sample, " +
			"the threshold fails; that no case at all has such a step is an error of the file.  `loop` and `duration` are on the provider's clock, " +
			"latency, bandwidth and connections are measured in real time.",
			[]string{"thresholds", "abort_on_fail", "metric"}, []string{"measure", "thresholds", "loop"}},
	}
}
