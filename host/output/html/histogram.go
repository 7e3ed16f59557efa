package html

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// mostCurves bounds the distributions of one name.  One of three digits takes some hundred kilobytes, with each digit more ten
// times as much.
const mostCurves = 512

var errRoom = errors.New("the histograms take too much room")

// histogramOf reads a histogram that another host may have told, or whoever wrote a file of records: how much room it asks for
// is looked at before it has any.
func (l *latencies) histogramOf(text string) (*hdr.Histogram, error) {
	encoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	inflating, err := zlib.NewReader(bytes.NewReader(encoded[min(len(encoded), 8):])) // behind a cookie and a length
	if err != nil {
		return nil, err
	}
	var header struct{ Cookie, Length, Offset, Digits int32 }
	if err := errors.Join(binary.Read(io.LimitReader(inflating, 16), binary.BigEndian, &header), inflating.Close()); err != nil {
		return nil, err
	}
	cost := 1
	for range max(0, min(header.Digits, 5)-3) {
		cost *= 10
	}
	if l.room -= cost; l.room < 0 {
		return nil, errRoom
	}
	return hdr.Decode([]byte(text))
}
