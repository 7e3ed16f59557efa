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

// HistogramRoom is the room for the histograms of a measurement: one of three digits takes some hundred kilobytes, and
// is one; with each digit more it is ten times as much.  It is enough for one of each step of a connection.
const HistogramRoom = 1500

var errRoom = errors.New("the histograms take too much room")

// ReadHistogram reads the histogram of a distribution, which another host may have told, or whoever wrote a file of
// records: what it asks for is looked at before it has any of it.
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
