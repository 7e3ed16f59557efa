package verb

import (
	"fmt"

	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// span is a part of a buffer.
type span struct {
	buffer         *testbed.Buffer
	offset, length int
}

// spanOf is a part of a buffer that lies within it; without a length, to its end.
func spanOf(buffer *testbed.Buffer, offset byteCount, length Optional[byteCount]) (span, error) {
	s := span{buffer: buffer, offset: int(offset)}
	if s.offset < 0 || s.offset > buffer.Size() {
		return s, &testbed.Failure{What: fmt.Sprintf("offset %d is outside buffer %q", s.offset, buffer.Name), Expected: fmt.Sprintf("0 to %d", buffer.Size()), Got: fmt.Sprint(s.offset)}
	}
	s.length = buffer.Size() - s.offset
	if !length.Given {
		return s, nil
	}
	if int(length.Value) < 0 || int(length.Value) > s.length {
		return s, &testbed.Failure{
			What:     fmt.Sprintf("length %d does not fit into buffer %q", length.Value, buffer.Name),
			Expected: fmt.Sprintf("%d bytes at most, from offset %d", s.length, s.offset),
			Got:      fmt.Sprint(int(length.Value)),
		}
	}
	s.length = int(length.Value)
	return s, nil
}

func (s span) bytes() []byte { return s.buffer.Bytes()[s.offset : s.offset+s.length] }

// sges is the span as scatter/gather entries; a message without data has none.
func (s span) sges() []rdmacore.SGE {
	if s.length == 0 {
		return nil
	}
	return []rdmacore.SGE{{Address: s.buffer.Address(s.offset), Length: uint32(s.length), LKey: uint32(s.buffer.View().LKey)}}
}

// entry is a scatter/gather entry as steps write it.
type entry struct {
	Buffer *testbed.Buffer     `arg:"buffer,required" doc:"own buffer"`
	Offset byteCount           `arg:"offset" doc:"where in it; without it at its beginning"`
	Length Optional[byteCount] `arg:"length" min:"1" max:"0xffffffff" doc:"how many bytes; without it, to the end of the buffer"`
}

// sgesOf are the scatter/gather entries of a request with their bytes: those that it lists, or the part of its one buffer.
// Without a length of its own that is no longer than most, unless that is negative.
func sgesOf(list []entry, buffer *testbed.Buffer, offset byteCount, length Optional[byteCount], most int) (sges []rdmacore.SGE, bytes int, err error) {
	if list == nil && buffer == nil {
		return nil, 0, nil // one request of a list may have no bytes
	}
	if list == nil {
		s, err := spanOf(buffer, offset, length)
		if err != nil {
			return nil, 0, err
		}
		if most >= 0 && !length.Given {
			s.length = min(s.length, most)
		}
		return s.sges(), s.length, nil
	}
	for i := range list {
		s, err := spanOf(list[i].Buffer, list[i].Offset, list[i].Length)
		if err != nil {
			return nil, 0, err
		}
		sges, bytes = append(sges, s.sges()...), bytes+s.length
	}
	return sges, bytes, nil
}

// checkEntries refuses a part of a buffer beside a list that says it for each.
func checkEntries(sges Optional[[]entry], offset, length Optional[byteCount]) *Refusal {
	if !sges.Given {
		return nil
	}
	refuse := func(name string) *Refusal {
		return &Refusal{Argument: name, Message: "each entry of sges has its own", Hint: "sges: [{buffer: NAME, " + name + ": ..}]"}
	}
	switch {
	case length.Given:
		return refuse("length")
	case offset.Given && (offset.Later || offset.Value != 0):
		return refuse("offset")
	}
	return nil
}
