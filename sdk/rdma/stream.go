package rdma

import (
	"io"
	"time"
	"unsafe"
)

// Stream carries bytes to and from another role of the run, outside of the fabric. One of ListenStream accepts
// connections.
type Stream struct {
	Handle  Handle
	Timeout time.Duration // of Read and Write; those of a new stream wait forever
}

// ListenStream takes streams of others to a service, a number of the guest's choice.
func ListenStream(service uint32, backlog int) (*Stream, error) {
	return newStream("stream_listen", abiStreamListen(service, uint32(backlog)))
}

// DialStream connects to a service of a role, as soon as that listens.
func DialStream(role string, service uint32, timeout time.Duration) (*Stream, error) {
	at, length := pointer(role)
	return newStream("stream_connect", abiStreamConnect(at, length, service, int64(timeout)))
}

func newStream(function string, result int32) (*Stream, error) {
	h, err := handle(function, result)
	if err != nil {
		return nil, err
	}
	return &Stream{Handle: h, Timeout: Forever}, nil
}

// Accept waits for a connection.
func (s *Stream) Accept(timeout time.Duration) (*Stream, error) {
	return newStream("stream_accept", abiStreamAccept(s.Handle, int64(timeout)))
}

// Read is that of an io.Reader.
func (s *Stream) Read(data []byte) (int, error) {
	if len(data) == 0 {
		return 0, nil
	}
	result := abiStreamRead(s.Handle, unsafe.Pointer(&data[0]), uint32(len(data)), int64(s.Timeout))
	if result == 0 {
		return 0, io.EOF
	}
	return int(max(result, 0)), check("stream_read", result)
}

// Write is that of an io.Writer: it writes all of data, or fails.
func (s *Stream) Write(data []byte) (written int, err error) {
	for written < len(data) {
		rest := data[written:]
		result := abiStreamWrite(s.Handle, unsafe.Pointer(&rest[0]), uint32(len(rest)), int64(s.Timeout))
		if err := check("stream_write", result); err != nil {
			return written, err
		}
		written += int(result)
	}
	return written, nil
}

// Close ends the stream.
func (s *Stream) Close() error { return check("stream_close", abiStreamClose(s.Handle)) }
