package hdrlog_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"rdmarun/host/output/hdrlog"
	"rdmarun/host/record"
)

// distribution has the values 1 to n, in microseconds.
func distribution(t *testing.T, of string, n int) record.Distribution {
	t.Helper()
	h := hdrhistogram.New(1, 60e9, 3)
	for i := range n {
		if err := h.RecordValue(int64(i+1) * 1000); err != nil {
			t.Fatal(err)
		}
	}
	text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	return record.Distribution{Of: of, Count: int64(n), HDR: string(text)}
}

func measured(name string, size int64, latency ...record.Distribution) *record.Record {
	return &record.Record{
		Kind: record.Measured, Time: time.Unix(1_700_000_000, 250e6), File: "lab/a.yaml",
		Case: "lab/a.yaml::one/two [x=1]",
		Measure: &record.Measure{
			What: record.What{Name: name, Type: "latency", Operation: "SEND"}, Role: "client", Peer: "server",
			How: record.How{Size: size}, Took: 2 * time.Second, Latency: latency,
		},
	}
}

// TestLogs reads what was written with the reader of HdrHistogram's own library.
func TestLogs(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new", "hdr")
	w, err := hdrlog.New(folder)
	if err != nil {
		t.Fatal(err)
	}
	bare := record.Distribution{Of: "total", Count: 9} // keep: false
	for _, r := range []*record.Record{
		measured("SEND latency", 64, distribution(t, "total", 100)),
		measured("SEND latency", 64, distribution(t, "total", 7)),
		measured("rate\n of; connections", 0, distribution(t, "total", 20), distribution(t, "connect", 10)),
		measured("bandwidth", 64),
		measured("without", 64, bare),
	} {
		if err := w.Record(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	want := []string{
		"a_one-two-x=1_SEND-latency_64B_client.hlog", "a_one-two-x=1_SEND-latency_64B_client_2.hlog",
		"a_one-two-x=1_rate-of-connections_client.hlog",
	}
	if !slices.Equal(names, want) {
		t.Fatalf("files %q, want %q", names, want)
	}
	for name, counts := range map[string]map[string]int64{
		want[0]: {"": 100}, want[1]: {"": 7}, want[2]: {"": 20, "connect": 10},
	} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Split(string(text), "\n"); !strings.HasPrefix(lines[0], "#lab/a.yaml::one/two [x=1]: ") ||
			strings.Contains(lines[0], "\r") {
			t.Errorf("%s begins with %q", name, lines[0])
		}
		reader := hdrhistogram.NewHistogramLogReader(bytes.NewReader(text))
		for range counts {
			h, err := reader.NextIntervalHistogram()
			if err != nil || h == nil {
				t.Fatalf("%s: %v, %v", name, h, err)
			}
			if h.TotalCount() != counts[h.Tag()] || h.EndTimeMs()-h.StartTimeMs() != 2000 {
				t.Errorf("%s, tag %q: %d values in %d ms", name, h.Tag(), h.TotalCount(), h.EndTimeMs()-h.StartTimeMs())
			}
		}
		if h, err := reader.NextIntervalHistogram(); h != nil || err != nil {
			t.Errorf("%s has more: %v, %v", name, h, err)
		}
	}
}

func TestNoFolder(t *testing.T) {
	if _, err := hdrlog.New("/dev/null/x"); err == nil {
		t.Error("a folder below a file")
	}
	w, err := hdrlog.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	broken := measured("x", 1, record.Distribution{Of: "total", Count: 1, HDR: "nonsense"})
	if err := w.Record(broken); err == nil || !strings.Contains(err.Error(), "lab/a.yaml") {
		t.Error(err)
	}
}
