package conformance

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/diag"
)

// leastCases is how large the corpus has become; it must not shrink.
const leastCases = 779

// TestCorpus runs every conformance case on the embedded provider, over each of its links. Each case asserts the
// kernel's behaviour. make conformance proves this in the virtual machine.
func TestCorpus(t *testing.T) {
	for _, link := range []string{"local", "packets", "udp"} {
		t.Run(link, func(t *testing.T) { runCorpus(t, link) })
	}
}

func runCorpus(t *testing.T, link string) {
	t.Helper()
	var text strings.Builder
	human := terminal.NewHuman(&text, terminal.HumanOptions{Quiet: true})
	left := &leftOut{listed: notOn(t, link)}
	totals, err := scenario.Run(t.Context(), checked(t), scenario.RunConfig{
		Open: scenario.OpenSoft, Link: link, ProviderName: "soft", Consumers: []record.Consumer{human, left},
		Jobs: 4, TimeScale: 5, // on udp it is the wall clock, and a test machine may be slow
	})
	if err != nil || totals.Failed+totals.Errors > 0 || totals.Skipped != iwarpCases(t)+left.count {
		t.Errorf("%v %+v\n%s", err, totals, &text)
	}
	if totals.Passed+left.count < leastCases {
		t.Errorf("%d cases passed and %d are left out; there were %d", totals.Passed, left.count, leastCases)
	}
	for name, used := range left.listed {
		if !used {
			t.Errorf("links.yaml: %s is not left out on the link %s", name, link)
		}
	}
}

// leftOut counts the cases that a link leaves out, and notes which entries name them.
type leftOut struct {
	listed map[string]bool
	count  int
}

func (l *leftOut) Wants(kind record.Kind) bool { return kind == record.CaseEnd }

func (l *leftOut) Record(r *record.Record) error {
	file, name := nameOf(r.Case)
	for _, each := range []string{file, name} {
		if _, is := l.listed[each]; is && r.Result.Status == record.Skipped {
			l.listed[each] = true
			l.count++
		}
	}
	return nil
}

// notOn is what links.yaml has of a link: files, and cases as FILE::CASE.
func notOn(t *testing.T, link string) map[string]bool {
	t.Helper()
	held(t, "links.yaml", "link", "reason")
	names := make(map[string]bool)
	for _, entry := range readList(t, "links.yaml") {
		if text(entry, "link") != link {
			continue
		}
		for _, node := range listed(entry, "cases") {
			names[node.Value] = false
		}
	}
	return names
}

// iwarpCases counts the cases of iWARP, which soft is not; they run on siw in the virtual machine.
func iwarpCases(t *testing.T) int {
	t.Helper()
	count := 0
	for _, s := range checked(t) {
		if strings.HasSuffix(s.Path, "iwarp.yaml") {
			count += len(s.Compiled.Cases)
		}
	}
	if count == 0 {
		t.Error("there are no cases of iWARP")
	}
	return count
}

// TestKnownCases wants every known difference to be of a case that exists.
func TestKnownCases(t *testing.T) {
	ids := make(map[string]bool)
	for _, s := range checked(t) {
		for _, c := range s.Compiled.Cases {
			ids[strings.TrimPrefix(c.ID, "../../")] = true
		}
	}
	errors := &diag.List{}
	for _, k := range ReadKnown("known.yaml", readFile(t, "known.yaml"), errors) {
		if !ids[k.Case] {
			t.Errorf("%s: there is no case %q", k.position(), k.Case)
		}
	}
	if errors.Len() > 0 {
		t.Errorf("%v", errors.Sorted())
	}
}

// TestCounts wants README to say how many cases there are, and how many of them differ in a known way.
func TestCounts(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(
		`(?s)runs (\d+) cases .*? (\d+) are equal; (\d+) differ.*? (\d+) are of one side.*? (\d+) are for iWARP`,
	).FindSubmatch(readme)
	if said == nil {
		t.Fatal("README does not say how many cases are equal, differ, and are of one side")
	}
	var numbers []int
	for _, digits := range said[1:] {
		number, err := strconv.Atoi(string(digits))
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, number)
	}
	total, equal, known, oneSided, iwarp := numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]
	cases := 0
	for _, s := range checked(t) {
		cases += len(s.Compiled.Cases)
	}
	differences := len(ReadKnown("known.yaml", readFile(t, "known.yaml"), &diag.List{}))
	if total != cases || known != differences || iwarp != iwarpCases(t) || equal+known+oneSided+iwarp != total {
		t.Errorf(
			"README says %d cases, %d known and %d for iWARP; there are %d, %d and %d (make conformance)", total, known,
			iwarp, cases, differences, iwarpCases(t),
		)
	}
}
