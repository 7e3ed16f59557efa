package record

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// HistogramRoom bounds the cost of the histograms of a measurement.  A histogram of three digits, some hundred
// kilobytes, costs 1, and each further digit costs ten times as much.  It is enough for one histogram of each step of a
// connection.
const HistogramRoom = 1500

var errRoom = errors.New("the histograms take too much room")

// ReadHistogram decodes the histogram of a distribution.  The text may come from another host or any file, so its size
// is checked before memory is allocated.
func ReadHistogram(text string, room *int) (*hdr.Histogram, error) {
	encoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	inflating, err := zlib.NewReader(bytes.NewReader(encoded[min(len(encoded), 8):])) // behind a cookie and a length
	if err != nil {
		return nil, err
	}
	var header struct{ Cookie, Length, Offset, Digits int32 }
	if err := errors.Join(
		binary.Read(io.LimitReader(inflating, 16), binary.BigEndian, &header), inflating.Close(),
	); err != nil {
		return nil, err
	}
	cost := 1
	for range max(0, min(header.Digits, 5)-3) {
		cost *= 10
	}
	if *room -= cost; *room < 0 {
		return nil, errRoom
	}
	return hdr.Decode([]byte(text))
}

// PercentileRank is which of count sorted values, from 1, is a percentile: the nearest rank. It is the rule of
// histograms, for values that are kept one by one.
func PercentileRank(percentile float64, count int) int {
	return min(max(1, int(percentile/100*float64(count)+0.5)), count)
}
