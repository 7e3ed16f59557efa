package main

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rdmarun/host/printable"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/example"
	"rdmarun/host/scenario/explain"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/verb"
)

const explainLong = `Explain a word or a number that a report, a log or a program has
shown. It may be the status of a work completion, a connection event, a reject reason,
an errno, or an error code of rdmarun. It may also be a word of the scenario language: a
verb, its arguments and results, a key, an operator or a function.

The output is the meaning, the usual causes, and how long it takes. For a verb it has
the arguments and results, and for a word of the language a scenario that you can run. A
number may have several meanings; all are shown. Put "--" before negative numbers.
"private data" and private_data are the same. A topic lists its words. Without an
argument, explain lists the topics.`

const explainExample = `  rdmarun explain RNR_RETRY_EXC_ERR
  rdmarun explain 12
  rdmarun explain -- -110
  rdmarun explain E0203
  rdmarun explain post_send
  rdmarun explain retry_count
  rdmarun explain times
  rdmarun explain expect
  rdmarun explain --example scenario >first.yaml
  rdmarun explain verb`

func newExplainCommand(a *app) *cobra.Command {
	var onlyExample bool
	command := &cobra.Command{
		Use:         "explain [WORD|TOPIC]...",
		Short:       "Say what a status, event, errno, error code or word of the language means",
		Annotations: configOptional,
		Long:        explainLong,
		Example:     explainExample,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return explainTopics(a.stdout)
			}
			if onlyExample {
				return showExample(a.stdout, strings.Join(args, " "), true)
			}
			return explainWords(a.stdout, args)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return explainable(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	command.Flags().BoolVar(&onlyExample, "example", false, "print only the scenario that shows the word")
	return command
}

// subject is a topic as the command line sees it: the tables of statuses, of error codes, and of verbs.
type subject struct {
	name, title string
	rows        func() [][2]string // name and meaning
	show        func(w io.Writer, word string) bool
	// sentences means that the rows are sentences, and not words to look up.
	sentences bool
}

func subjects() []subject {
	var all []subject
	for _, topic := range explain.Topics() {
		all = append(all, subject{name: topic.Name, title: topic.Title, rows: topicRows(topic),
			show: func(w io.Writer, word string) bool {
				return showEntry(w, topic, word)
			}})
	}
	all = append(all,
		subject{
			name: "code", title: "code of an error or a warning of \"rdmarun validate\"", rows: codeRows,
			show: showCode,
		},
		subject{name: "verb", title: "verb of the scenario language", rows: verbRows, show: showVerb},
		propertySubject("argument", "argument of verbs", argumentProperties),
		propertySubject("result", "result of verbs, for expect and expressions", resultProperties))
	all = append(all, languageSubjects()...)
	all = append(all, subject{name: "synonym", title: synonymTitle, rows: synonymRows, show: showSynonym})
	return append(all, subject{
		name: "times", title: "how long things take", rows: timeRows, show: showTimes, sentences: true,
	})
}

func explainTopics(w io.Writer) error {
	table := newTable(w)
	for _, s := range subjects() {
		fmt.Fprintf(table, "%s\t%s\t%d\n", s.name, s.title, len(s.rows()))
	}
	fmt.Fprint(table, "\nrdmarun explain TOPIC lists what a topic has, rdmarun explain NAME explains one.\n")
	return table.Flush()
}

// asWord writes several words, or a word with hyphens, as tables have them: private data, private-data.
var asWord = strings.NewReplacer(" ", "_", "-", "_")

// explainWords explains the words of a command line: one word, one that was written as several, or each of several.
func explainWords(w io.Writer, args []string) error {
	written := strings.TrimSpace(strings.Join(args, " "))
	known := func(word string) bool {
		found, _ := explainWord(&bytes.Buffer{}, word) // a buffer takes everything
		return found
	}
	words := []string{written}
	switch {
	case known(written):
	case known(asWord.Replace(written)):
		words = []string{asWord.Replace(written)}
	case !slices.ContainsFunc(args, func(arg string) bool { return !known(arg) }):
		words = args
	default:
		parts := slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return !known(arg) })
		return unknownWord(written, parts)
	}
	for i, word := range words {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if _, err := explainWord(w, word); err != nil {
			return err
		}
	}
	return nil
}

// explainWord shows everything about a word, and reports whether there is anything.
func explainWord(w io.Writer, word string) (found bool, err error) {
	for _, s := range subjects() {
		if s.name == word {
			fmt.Fprintf(w, "topic %s (%s):\n", s.name, s.title) // the word may have entries of its own, too
			table := newTable(w)
			for _, row := range s.rows() {
				fmt.Fprintf(table, "%s\t%s\n", row[0], row[1])
			}
			if err := table.Flush(); err != nil {
				return true, err
			}
			found = true // and it may be a verb as well: reject
		}
	}
	show := func(show func(io.Writer, string) bool) error {
		text := newTable(w)
		if !show(text, word) {
			return nil
		}
		if found {
			fmt.Fprintln(w)
		}
		found = true
		return text.Flush()
	}
	for _, s := range subjects() {
		if err := show(s.show); err != nil {
			return true, err
		}
	}
	if !found {
		if err := show(showValue); err != nil {
			return true, err
		}
	}
	if found || exampleOf(word) != nil {
		return true, showExample(w, word, false)
	}
	return false, nil
}

// known reports whether some table has a word.
func known(word string) bool {
	found, err := explainWord(io.Discard, word)
	return found && err == nil
}

// unknownWord is the error for a word that no table has. It suggests what was meant or where to look. parts are those
// of its words that are known.
func unknownWord(word string, parts []string) error {
	hint := diag.CloseTo(asWord.Replace(word), explainable())
	more := func(format string, arguments ...any) {
		hint = strings.TrimPrefix(hint+"  "+fmt.Sprintf(format, arguments...), "  ")
	}
	if mentions := mentioning(word); len(mentions) > 0 {
		more("%q is mentioned under %s", word, strings.Join(mentions, ", "))
	}
	if len(parts) > 0 {
		more("known by itself: %s", strings.Join(parts, ", "))
	}
	switch {
	case hint != "":
	case known("ibv_" + word):
		hint = fmt.Sprintf("did you mean %q?", "ibv_"+word)
	case known("rdma_" + word):
		hint = fmt.Sprintf("did you mean %q?", "rdma_"+word)
	case strings.HasPrefix(word, "ibv_"), strings.HasPrefix(word, "rdma_"):
		hint = fmt.Sprintf(
			"no verb of the scenario language calls a function of that name; \"rdmarun explain verb\" lists the "+
				"verbs, and man %s may explain it",
			word,
		)
	case strings.Contains(word, " "):
		hint = "ask for one word; \"rdmarun explain\" lists the topics"
	default:
		hint = "\"rdmarun explain\" lists the topics"
	}
	return withHint(usageError("nothing is known of %q", word), hint)
}

// maxMentions is how many words a hint lists because their meaning mentions a word.
const maxMentions = 5

// mentioning lists the words with a meaning that mentions a word.
func mentioning(word string) []string {
	if len(word) < 4 {
		return nil // of and the like
	}
	stands := regexp.MustCompile(`(?i)\b` + regexp.QuoteMeta(word) + `\b`)
	var words []string
	for _, s := range subjects() {
		if s.sentences {
			continue
		}
		for _, row := range s.rows() {
			if stands.MatchString(row[1]) && !slices.Contains(words, row[0]) {
				words = append(words, row[0])
			}
			if len(words) == maxMentions {
				return words
			}
		}
	}
	return words
}

// explainable lists every word that has an explanation.
func explainable() []string {
	var words []string
	for _, s := range subjects() {
		words = append(words, s.name)
		if s.sentences {
			continue
		}
		for _, row := range s.rows() {
			words = append(words, row[0])
		}
	}
	words = append(words, valueWords()...)
	slices.Sort(words)
	return slices.Compact(words)
}

func topicRows(topic explain.Topic) func() [][2]string {
	return func() [][2]string {
		rows := make([][2]string, len(topic.Entries))
		for i, entry := range topic.Entries {
			rows[i] = [2]string{entry.Name, entry.Meaning}
		}
		return rows
	}
}

func showEntry(w io.Writer, topic explain.Topic, word string) bool {
	entry, found := topic.Find(word)
	if !found {
		return false
	}
	number := ""
	if n := topic.Number(entry); n != "-" {
		number = " (" + n + ")"
	}
	fmt.Fprintf(w, "%s%s: %s\n  %s\n", entry.Name, number, topic.Title, entry.Meaning)
	for i, cause := range entry.Causes {
		if i == 0 {
			fmt.Fprintln(w, "causes seen:")
		}
		fmt.Fprintf(w, "  %s\n", cause)
	}
	return true
}

func codeRows() [][2]string {
	var rows [][2]string
	titles := diag.Titles()
	for _, code := range sortedNames(titles) {
		rows = append(rows, [2]string{code, titles[code]})
	}
	return rows
}

func showCode(w io.Writer, word string) bool {
	title, known := diag.Titles()[strings.ToUpper(word)]
	if known {
		fmt.Fprintf(w, "%s: code of \"rdmarun validate\"\n  %s\n", strings.ToUpper(word), title)
		wrong, right := example.OfCode(strings.ToUpper(word))
		fmt.Fprintf(w, "\nwrong:\n\n%s\nright:\n\n%s", indented(filesShown(wrong)), indented(filesShown(right)))
	}
	return known
}

// filesShown are the files of a code's example as a reader sees them, a single one without its name.
func filesShown(texts map[string]string) string {
	var shown strings.Builder
	for _, name := range shownFiles(texts) {
		if len(texts) > 1 || name != example.Checked {
			fmt.Fprintf(&shown, "-- %s --\n", fileName(name))
		}
		for line := range strings.Lines(printable.Text(texts[name])) {
			if length := len(line); length > maxLine {
				line = fmt.Sprintf("%s... (%d characters)\n", line[:maxLine/2], length)
			}
			shown.WriteString(line)
		}
	}
	return shown.String()
}

// maxLine is how many characters of a line of an example are shown; the rest only repeats.
const maxLine = 200

func verbRows() [][2]string {
	var rows [][2]string
	for _, v := range verb.NewTable().Verbs() {
		rows = append(rows, [2]string{v.Name, v.Doc})
	}
	return rows
}

func timeRows() [][2]string {
	var rows [][2]string
	for _, each := range explain.Times() {
		rows = append(rows, [2]string{each.What, each.Long})
	}
	return rows
}

// showTimes prints how long things take that have to do with a word.
func showTimes(w io.Writer, word string) bool {
	times := explain.TimesOf(word)
	for i, each := range times {
		if i == 0 {
			fmt.Fprintf(w, "times of %s:\n", word)
		}
		fmt.Fprintf(w, "  %s: %s\n", each.What, each.Long)
	}
	return len(times) > 0
}

// showVerb explains a verb with everything that its row in the table has; cells are separated by tabs.
func showVerb(w io.Writer, word string) bool {
	v := verb.NewTable().Lookup(word)
	if v == nil {
		return showVerbsOf(w, word)
	}
	fmt.Fprintf(w, "%s: verb of the scenario language", v.Name)
	if v.Manual != "" {
		fmt.Fprintf(w, ", %s", v.Manual)
	}
	fmt.Fprintf(w, "\n  %s\n", v.Doc)
	if v.Capability != "" {
		fmt.Fprintf(w, "  It needs %s; without it the case is skipped.\n", v.Capability)
	}
	for i, row := range argumentRows(v) {
		if i == 0 {
			fmt.Fprintln(w, "arguments:")
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", row.name, row.notes, row.doc)
	}
	for i, result := range v.Results {
		if i == 0 {
			fmt.Fprintln(w, "results, for expect and expressions:")
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", result.Name, resultNotes(result), result.Doc)
	}
	return true
}

// showVerbsOf lists the verbs that call a function of librdmacm or libibverbs.
func showVerbsOf(w io.Writer, function string) bool {
	if !strings.HasPrefix(function, "rdma_") && !strings.HasPrefix(function, "ibv_") {
		return false
	}
	function, _, _ = strings.Cut(function, "(")
	_, short, _ := strings.Cut(function, "_")
	found := false
	for _, v := range verb.NewTable().Verbs() {
		if !strings.Contains(v.Manual, function+"(") && v.Name != short {
			continue
		}
		if !found {
			fmt.Fprintf(
				w, "%s: function of %s; verbs of the scenario language that call it:\n", function, libraryOf(function),
			)
		}
		found = true
		fmt.Fprintf(w, "  %s\t%s\n", v.Name, v.Doc)
	}
	return found
}

func libraryOf(function string) string {
	if strings.HasPrefix(function, "ibv_") {
		return "libibverbs"
	}
	return "librdmacm"
}

// maxWordList is how many words an explanation lists; those of longer lists are topics of their own.
const maxWordList = 16

// argumentRow is a line of a table of arguments.
type argumentRow struct{ name, notes, doc string }

// argumentRows are the arguments as a step writes them. They are the fields of a mapping behind it, and the forms of
// data that the step has instead of it.
func argumentRows(v *verb.Verb) []argumentRow {
	var rows []argumentRow
	for _, argument := range v.Arguments {
		if argument.Inline {
			for _, form := range compile.DataForms() {
				rows = append(rows, argumentRow{form.Name, argument.Doc, form.Doc})
			}
			continue
		}
		rows = append(rows, argumentRow{argument.Name, argumentNotes(argument), argument.Doc})
		for _, field := range fieldsOf(argument) {
			rows = append(rows, argumentRow{"  ." + field.Name, argumentNotes(field), field.Doc})
		}
	}
	return rows
}

// argumentNotes are type, words, bounds and default in a few words.
func argumentNotes(argument verb.Argument) string {
	notes := argument.Type.String()
	if len(argument.Words) > 0 && len(argument.Words) <= maxWordList {
		notes = strings.Join(argument.Words, ", ")
		if argument.Type == verb.Words {
			notes = "a list of " + notes
		}
	}
	if argument.Min != 0 || argument.Max != 0 {
		notes += fmt.Sprintf(" (%s to %s)", bound(argument.Type, argument.Min), bound(argument.Type, argument.Max))
	}
	switch {
	case argument.Required:
		notes += ", required"
	case argument.Group != "":
		notes += ", one of: " + argument.Group
	case argument.Default != nil:
		notes += ", default " + compile.Show(argument.Default, argument.Type)
	}
	return notes
}

func bound(t verb.Type, n int64) string {
	if t == verb.Duration {
		return quantity.Time(time.Duration(n))
	}
	if t == verb.Size {
		return quantity.Size(n)
	}
	return fmt.Sprint(n)
}

// resultNotes are the type of a result and its default expectation.
func resultNotes(r verb.Result) string {
	notes := r.Type.String()
	if r.Default != nil {
		notes += fmt.Sprintf(", expected: %v", r.Default)
	}
	return notes
}
