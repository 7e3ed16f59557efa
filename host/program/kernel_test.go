package program

import (
	"encoding/binary"
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

func TestEachMessage(t *testing.T) {
	message := func(kind uint16, body ...byte) []byte {
		text := binary.NativeEndian.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+len(body)))
		text = binary.NativeEndian.AppendUint16(text, kind)
		return append(append(text, make([]byte, unix.NLMSG_HDRLEN-len(text))...), body...)
	}
	code := func(code int32) []byte { return binary.NativeEndian.AppendUint32(nil, uint32(code)) }
	const data = nldevClient<<10 | nldevGet
	for name, test := range map[string]struct {
		answer []byte
		count  int
		done   bool
		err    error
	}{
		"data": {answer: append(message(data, 1, 2, 3, 4), message(data)...), count: 2},
		"the end": {
			answer: append(message(data), message(unix.NLMSG_DONE, code(0)...)...), count: 1, done: true,
		},
		"an error":        {answer: message(unix.NLMSG_ERROR, code(-int32(unix.ENODEV))...), err: unix.ENODEV},
		"acknowledgement": {answer: message(unix.NLMSG_ERROR, code(0)...), done: true},
		"a short error":   {answer: message(unix.NLMSG_ERROR), err: unix.EBADMSG},
		"a bad length":    {answer: make([]byte, unix.NLMSG_HDRLEN), err: unix.EBADMSG},
	} {
		t.Run(name, func(t *testing.T) {
			count := 0
			done, err := eachMessage(test.answer, func([]byte) { count++ })
			if count != test.count || done != test.done || !errors.Is(err, test.err) {
				t.Errorf("%d messages, done %v, %v; want %d, %v, %v", count, done, err, test.count, test.done, test.err)
			}
		})
	}
}
