package trace

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPageIsBounded: a page has the first calls, the last ones, and those between them that failed, in their order.
func TestPageIsBounded(t *testing.T) {
	var out strings.Builder
	page := NewPage(&out, "prog </title><script>", LineOptions{})
	const calls, failing = 3 * (pageFirst + pageLast), pageFirst + 100
	for i := range calls {
		call := &Call{
			Process: 7, Thread: 7, Name: "ibv_query_gid", Group: "device", End: time.Duration(i), Result: int64(0),
			Arguments: []Field{{Name: "index", Value: uint64(i)}},
		}
		if i == failing {
			call.Errno, call.Result = syscall.EINVAL, int64(syscall.EINVAL)
		}
		page.Take(call)
	}
	if err := page.End("prog exited with 0"); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{
		fmt.Sprintf("%d calls", calls), "<b>1 with a failure</b>", "index=0)", fmt.Sprintf("index=%d)", calls-1),
		fmt.Sprintf("index=%d)", failing), "<li class=\"gap\">100 calls are left out</li>",
		fmt.Sprintf("<li class=\"gap\">%d calls are left out</li>", calls-pageFirst-pageLast-101),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if got := strings.Count(text, "data-group=\"device\""); got != pageFirst+pageLast+1 {
		t.Errorf("%d rows", got)
	}
	if strings.Contains(text, "prog </title>") {
		t.Error("the name of the program is not escaped")
	}
}

// TestPageFoldsPolls: polls that find nothing are one row with the poll that ends them.
func TestPageFoldsPolls(t *testing.T) {
	var out strings.Builder
	page := NewPage(&out, "prog", LineOptions{})
	for _, result := range []int64{0, 0, 1} {
		call := &Call{
			Process: 7, Thread: 7, Name: "ibv_poll_cq", Group: "poll", Result: result,
			Arguments: []Field{{Value: Word("cq#1")}},
		}
		if result == 0 {
			call.Polls = 5
		}
		page.Take(call)
	}
	if err := page.End("prog exited with 0"); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if strings.Count(text, "data-group=\"poll\"") != 1 || !strings.Contains(text, "after 10 times 0") {
		t.Errorf("the polls are not one row:\n%s", text)
	}
}
