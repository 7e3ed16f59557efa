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
