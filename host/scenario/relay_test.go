package scenario

import (
	"slices"
	"testing"

	"rdmarun/host/record"
)

// kinds keeps what comes, in its order.
type kinds []string

func (k *kinds) Wants(record.Kind) bool { return true }

func (k *kinds) Record(each *record.Record) error {
	*k = append(*k, string(each.Kind)+each.Host)
	return nil
}

// TestOthersBeginSooner: what another process reports of a case comes behind its beginning, and before its end, also of a case
// that does not begin here.
func TestOthersBeginSooner(t *testing.T) {
	start := &record.Record{Kind: record.CaseStart, Start: &record.Start{}}
	end := &record.Record{Kind: record.CaseEnd, Result: &record.Result{}}
	from := func(host string) *record.Record {
		return &record.Record{Kind: record.Output, Host: host, Line: &record.Line{}}
	}
	for name, test := range map[string]struct {
		hold bool
		come []*record.Record
		want []string
	}{
		"sooner": {false, []*record.Record{from("a"), from("b"), start, from("c"), end}, []string{"case_start", "outputa", "outputb", "outputc", "case_end"}},
		"held":   {true, []*record.Record{from("a"), start, from("b"), end}, []string{"case_start", "outputa", "outputb", "case_end"}},
		"never":  {false, []*record.Record{from("a"), end}, []string{"outputa", "case_end"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got kinds
			r := &relay{hold: test.hold, jobs: &jobs{stream: record.NewStream(&got), config: RunConfig{Party: &Party{Leads: &Lead{}}}}}
			for _, each := range test.come {
				if err := r.Record(each); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%v, not %v", got, test.want)
			}
		})
	}
}
