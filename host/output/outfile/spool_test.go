package outfile

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestSpool(t *testing.T) {
	var spool Spool
	defer spool.Close()
	var want [2]strings.Builder
	var parts [2][]Part
	long := strings.Repeat("x", 1<<12)
	for i := range 100 {
		text := fmt.Sprintf("%d%s\n", i, long)
		which := i / 3 % 2 // neighbours become one part
		want[which].WriteString(text)
		var err error
		if parts[which], err = spool.Append(parts[which], func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
			t.Fatal(err)
		}
	}
	for i := range parts {
		var got bytes.Buffer
		if err := spool.Copy(&got, parts[i]); err != nil || got.String() != want[i].String() {
			t.Errorf("%d: %d bytes, want %d; %v", i, got.Len(), want[i].Len(), err)
		}
		if len(parts[i]) != 17 {
			t.Errorf("%d: %d parts", i, len(parts[i]))
		}
	}
	if err := spool.Copy(io.Discard, nil); err != nil {
		t.Error(err)
	}
	empty := Spool{}
	if err := empty.Copy(io.Discard, nil); err != nil {
		t.Error(err)
	}
}
