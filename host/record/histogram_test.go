package record

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"pgregory.net/rapid"
)

// encoded is the text of a histogram with these values.
func encoded(t interface{ Fatal(...any) }, digits int, values ...int64) string {
	h := hdr.New(1, 1<<40, digits)
	for _, value := range values {
		if err := h.RecordValue(value); err != nil {
			t.Fatal(err)
		}
	}
	text, err := h.Encode(hdr.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestReadHistogram: a histogram is read as it was written, within its digits.
func TestReadHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.IntRange(1, 5).Draw(t, "digits")
		values := rapid.SliceOfN(rapid.Int64Range(1, 1<<40), 1, 50).Draw(t, "values")
		room := HistogramRoom
		got, err := ReadHistogram(encoded(t, digits, values...), &room)
		if err != nil {
			t.Fatal(err)
		}
		if got.TotalCount() != int64(len(values)) {
			t.Errorf("%d of %d values", got.TotalCount(), len(values))
		}
		want := hdr.New(1, 1<<40, digits)
		for _, value := range values {
			_ = want.RecordValue(value)
		}
		for _, q := range []float64{0, 50, 90, 99.9, 100} {
			if got.ValueAtQuantile(q) != want.ValueAtQuantile(q) {
				t.Errorf("quantile %g is %d, not %d", q, got.ValueAtQuantile(q), want.ValueAtQuantile(q))
			}
		}
	})
}

// TestHistogramRoom: histograms cost room by their digits, and the first one without room is refused before it is made.
func TestHistogramRoom(t *testing.T) {
	for digits, cost := range map[int]int{1: 1, 3: 1, 4: 10, 5: 100} {
		room := HistogramRoom
		if _, err := ReadHistogram(encoded(t, digits, 7), &room); err != nil || HistogramRoom-room != cost {
			t.Errorf("%d digits cost %d: %v", digits, HistogramRoom-room, err)
		}
	}
	text, room, read := encoded(t, 5, 7), HistogramRoom, 0
	for ; read < 100; read++ {
		if _, err := ReadHistogram(text, &room); err != nil {
			if !errors.Is(err, errRoom) {
				t.Error(err)
			}
			break
		}
	}
	if read != HistogramRoom/100 {
		t.Errorf("%d histograms of five digits have room", read)
	}
	// A measurement's histograms share the room.
	m := Measure{Latency: make([]Distribution, HistogramRoom/100+1)}
	for i := range m.Latency {
		m.Latency[i].HDR = text
	}
	if err := m.Check(); !errors.Is(err, errRoom) {
		t.Errorf("16 histograms of five digits: %v", err)
	}
	m.Latency = m.Latency[1:]
	if err := m.Check(); err != nil {
		t.Errorf("15 histograms of five digits: %v", err)
	}
}

// TestHostileHistograms: a text that is not a histogram is an error, whatever size it names.
func TestHostileHistograms(t *testing.T) {
	good := encoded(t, 3, 1, 2, 3)
	deflated := func(header ...int32) string {
		var body bytes.Buffer
		body.Write(make([]byte, 8)) // cookie and length
		w := zlib.NewWriter(&body)
		_ = binary.Write(w, binary.BigEndian, header)
		_ = w.Close()
		return base64.StdEncoding.EncodeToString(body.Bytes())
	}
	for name, text := range map[string]string{
		"nothing": "", "no base64": "!" + good, "half of one": good[:len(good)/2/4*4],
		"not compressed": "AAAA" + good[4:],
		"a cookie alone": good[:12], "a header that is short": deflated(1, 2), "no digits": deflated(0, 0, 0, 0),
		"digits without end": deflated(0x1c849303, 40, 0, 1<<30), "digits below 0": deflated(0x1c849303, 40, 0, -5),
		"a bomb": base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x00", 64))),
	} {
		room := HistogramRoom
		if got, err := ReadHistogram(text, &room); err == nil {
			t.Errorf("%s: %d values", name, got.TotalCount())
		}
		if room < HistogramRoom-100 {
			t.Errorf("%s costs %d", name, HistogramRoom-room)
		}
	}
}

// TestPercentileRank: a percentile of values that are kept one by one is that of a histogram of them.
func TestPercentileRank(t *testing.T) {
	h := hdr.New(1, 1<<20, 5)
	for count := 1; count <= 300; count++ {
		if err := h.RecordValue(int64(count)); err != nil {
			t.Fatal(err)
		}
		for _, percentile := range []float64{0, 1, 50, 90, 99, 99.9, 100} {
			got, want := PercentileRank(percentile, count), h.ValueAtPercentile(percentile)
			if int64(got) != want {
				t.Errorf("%v of 1 to %d: %d, and of a histogram %d", percentile, count, got, want)
			}
		}
	}
}
