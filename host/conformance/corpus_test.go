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

// TestCorpus runs every conformance case on the embedded provider, over each of its links: what each asserts is the
// kernel's behaviour, which make conformance proves in the virtual machine.
func TestCorpus(t *testing.T) {
	for _, link := range []string{"local", "packets"} {
		t.Run(link, func(t *testing.T) { runCorpus(t, link) })
	}
}

func runCorpus(t *testing.T, link string) {
	t.Helper()
	var text strings.Builder
	human := terminal.NewHuman(&text, terminal.HumanOptions{Quiet: true})
	totals, err := scenario.Run(t.Context(), checked(t), scenario.RunConfig{
		Open: scenario.OpenSoft, Link: link, ProviderName: "soft", Consumers: []record.Consumer{human},
	})
	if err != nil || totals.Failed+totals.Errors > 0 || totals.Skipped != iwarpCases(t) {
		t.Errorf("%v %+v\n%s", err, totals, &text)
	}
	if totals.Passed < leastCases {
		t.Errorf("%d cases passed; there were %d", totals.Passed, leastCases)
	}
}

// iwarpCases counts the cases of iWARP, which soft is not; they run on siw in the virtual machine.
func iwarpCases(t *testing.T) int {
	t.Helper()
	count := 0
	for _, s := range checked(t) {
		if strings.HasSuffix(s.Path, "iwarp.yaml") {
			count += len(s.Program.Cases)
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
		for _, c := range s.Program.Cases {
			ids[strings.TrimPrefix(c.ID, "../../")] = true
		}
	}
	errors := &diag.List{}
	for _, k := range ReadKnown("known.yaml", readFile(t, "known.yaml"), errors) {
		if !ids[k.Case] {
			t.Errorf("%s: there is no case %q", k.Position(), k.Case)
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
	said := regexp.MustCompile(`(?s)runs (\d+) cases .*? (\d+) are equal; (\d+) differ.*? (\d+) are of one side.*? (\d+) are for iWARP`).FindSubmatch(readme)
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
		cases += len(s.Program.Cases)
	}
	differences := len(ReadKnown("known.yaml", readFile(t, "known.yaml"), &diag.List{}))
	if total != cases || known != differences || iwarp != iwarpCases(t) || equal+known+oneSided+iwarp != total {
		t.Errorf("README says %d cases, %d known and %d for iWARP; there are %d, %d and %d (make conformance)", total, known, iwarp, cases, differences, iwarpCases(t))
	}
}
