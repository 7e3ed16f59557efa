package hostfuncs

import (
	"context"
	"errors"
	"syscall"

	"rdmarun/hostfuncs/stream"
	"rdmarun/rdmacore"
)

// streamEnd is a listener or a connection.
type streamEnd struct {
	listener *stream.Listener // nil for a connection
	conn     *stream.Conn
}

func (s *streamEnd) destroy() error {
	if s.listener != nil {
		s.listener.Close()
	} else {
		s.conn.Close()
	}
	return nil
}

func streamFunctions() []Function {
	end := Param{"stream", HandleOf, "stream", ""}
	timeout := Param{"timeout_ns", I64, "", "how long to wait; -1 without limit"}
	const stopped = "ETIMEDOUT: the time is over. ECANCELED: the guest was asked to stop."
	return []Function{
		{
			Name: "stream_listen", Since: v1_5, Capability: CapabilitySync,
			Doc: "Takes streams of bytes from other roles of the run, apart from the fabric. Programs use a TCP " +
				"connection for that, to exchange their queue pairs. poll_set has IN when one can be accepted.",
			Params: []Param{{"service", U32, "", "a number that others connect to"},
				{"backlog", U32, "", "connections that wait to be accepted, 1 to 128"}},
			Result:  "the stream's handle",
			Errors:  "EADDRINUSE: this guest listens there already. EINVAL: no such backlog.",
			binding: bind2((*Instance).streamListen),
		},
		{
			Name: "stream_accept", Since: v1_5, Capability: CapabilitySync, Blocking: true,
			Doc:     "Waits for a connection of a stream_listen and takes it.",
			Params:  []Param{end, timeout},
			Result:  "the handle of the connection",
			Errors:  "EINVAL: not of stream_listen. " + stopped,
			binding: bind2((*Instance).streamAccept),
		},
		{
			Name: "stream_connect", Since: v1_5, Capability: CapabilitySync, Blocking: true,
			Doc: "Connects to a service of a role, a guest of the run, on whatever host. It waits until that " +
				"listens there, and " +
				"has room in its backlog.",
			Params: []Param{{"role", In, "text", "the role with the service"}, {"length", U32, "", "of role, in bytes"},
				{"service", U32, "", ""}, timeout},
			Result: "the stream's handle",
			Errors: "ECONNREFUSED: no guest listens there, with a timeout of 0. ECONNRESET: its process is lost. " +
				stopped,
			binding: bind4((*Instance).streamConnect),
		},
		{
			Name: "stream_read", Since: v1_5, Capability: CapabilitySync, Blocking: true,
			Doc:     "Waits until bytes have come, and takes them. poll_set has IN when it would not wait.",
			Params:  []Param{end, {"data", Out, "bytes", ""}, {"length", U32, "", "room there, in bytes"}, timeout},
			Result:  "the number of bytes; 0 at the end of the stream",
			Errors:  "ECONNRESET: the peer's process is lost. EINVAL: not a connection. " + stopped,
			binding: bind4((*Instance).streamRead),
		},
		{
			Name: "stream_write", Since: v1_5, Capability: CapabilitySync, Blocking: true,
			Doc: "Waits until there is room, 32768 bytes of which the peer has read none, and gives what fits. " +
				"poll_set has OUT when " +
				"it would not wait, and HUP when the peer has closed.",
			Params:  []Param{end, {"data", In, "bytes", ""}, {"length", U32, "", "in bytes"}, timeout},
			Result:  "the number of bytes, which may be fewer than length",
			Errors:  "ECONNRESET: the peer has closed. EINVAL: not a connection. " + stopped,
			binding: bind4((*Instance).streamWrite),
		},
		{
			Name: "stream_close", Since: v1_5, Capability: CapabilitySync,
			Doc: "Ends a stream. The peer can still read what was written before; an unaccepted stream ends " +
				"as well.",
			Params:  []Param{end},
			binding: bind1((*Instance).streamClose),
		},
	}
}

func (i *Instance) streamListen(service, backlog uint32) int32 {
	if backlog == 0 || backlog > stream.MaxPending {
		return i.refuse(syscall.EINVAL, "a backlog is 1 to 128")
	}
	cost := streamCost // with what unaccepted connections hold
	cost.Memory = plainBytes + int64(backlog)*streamCost.Memory
	return create(i, &i.streams, cost, func() (*streamEnd, error) {
		listener, err := i.participant.Listen(service, int(backlog))
		return &streamEnd{listener: listener}, err
	}, (*streamEnd).destroy)
}

func (i *Instance) streamAccept(handle Handle, timeout Nanoseconds) int32 {
	end, ok := i.streams.get(handle)
	switch {
	case !ok:
		return i.badHandle(kindStream)
	case end.listener == nil:
		return i.refuse(syscall.EINVAL, "the stream does not listen")
	}
	source, _ := end.source(pollIn)
	return i.newStream(timeout, source, end.listener.Accept)
}

func (i *Instance) streamConnect(role Pointer, length, service uint32, timeout Nanoseconds) int32 {
	name, wrong := i.text(role, length)
	if wrong != 0 {
		return i.badPointer("role", wrong)
	}
	source := rdmacore.NewSource(func() bool { return i.participant.CanConnect(name, service) }, i.participant.Watch)
	return i.newStream(timeout, source, func() (*stream.Conn, error) {
		conn, err := i.participant.Connect(name, service)
		if err == syscall.ECONNREFUSED && timeout != 0 {
			err = syscall.EAGAIN
		}
		return conn, err
	})
}

// newStream makes a connection when there is one.
func (i *Instance) newStream(timeout Nanoseconds, source rdmacore.Source, get func() (*stream.Conn, error)) int32 {
	if err := i.budget.Charge(streamCost); err != nil {
		return i.fail(err)
	}
	var conn *stream.Conn
	failed := i.untilDone(timeout, source, func() (err error) {
		conn, err = get()
		return err
	})
	i.budget.Credit(streamCost) // which create charges again
	if failed != 0 {
		return failed
	}
	return create(
		i, &i.streams, streamCost, func() (*streamEnd, error) { return &streamEnd{conn: conn}, nil },
		(*streamEnd).destroy,
	)
}

func (i *Instance) streamRead(handle Handle, data Pointer, length uint32, timeout Nanoseconds) int32 {
	return i.transfer(handle, "data", data, length, timeout, pollIn, (*stream.Conn).Read)
}

func (i *Instance) streamWrite(handle Handle, data Pointer, length uint32, timeout Nanoseconds) int32 {
	return i.transfer(handle, "data", data, length, timeout, pollOut, (*stream.Conn).Write)
}

func (i *Instance) transfer(handle Handle, what string, at Pointer, length uint32, timeout Nanoseconds, event uint32,
	move func(*stream.Conn, []byte) (int, error)) int32 {
	end, ok := i.streams.get(handle)
	switch {
	case !ok:
		return i.badHandle(kindStream)
	case end.conn == nil:
		return i.refuse(syscall.EINVAL, "the stream listens: it has no bytes")
	}
	data, wrong := i.bytes(at, length)
	if wrong != 0 {
		return i.badPointer(what, wrong)
	}
	source, _ := end.source(event)
	n := 0
	if failed := i.untilDone(timeout, source, func() (err error) {
		n, err = move(end.conn, data)
		return err
	}); failed != 0 {
		return failed
	}
	return int32(n)
}

// untilDone tries until it is not EAGAIN, and waits for the source in between.
func (i *Instance) untilDone(timeout Nanoseconds, source rdmacore.Source, try func() error) int32 {
	err := try()
	switch {
	case err != syscall.EAGAIN:
		i.exitIfOver()
		return i.result(err)
	case timeout == 0:
		return i.refuse(syscall.ETIMEDOUT, "it would have to wait")
	}
	if err := i.openPoller(); err != nil {
		return i.fail(err)
	}
	sources, found := []rdmacore.Source{source}, make([]rdmacore.Readiness, 1)
	return i.wait(timeout, func(ctx context.Context) error {
		for {
			if _, err := i.poller.Wait(ctx, sources, found); err != nil {
				return err
			}
			if err := try(); !errors.Is(err, syscall.EAGAIN) { // another guest may have been faster
				return err
			}
		}
	})
}

func (i *Instance) streamClose(handle Handle) int32 {
	return destroy(i, &i.streams, handle, (*streamEnd).destroy)
}

// source is what poll_set finds of a stream.
func (s *streamEnd) source(event uint32) (rdmacore.Source, error) {
	switch {
	case s.listener != nil && event == pollIn:
		return rdmacore.NewSource(s.listener.Pending, s.listener.Watch), nil
	case s.conn != nil && event == pollIn:
		return rdmacore.NewSource(func() bool { readable, _, _ := s.conn.State(); return readable }, s.conn.Watch), nil
	case s.conn != nil && event == pollOut:
		return rdmacore.NewSource(func() bool { _, writable, _ := s.conn.State(); return writable }, s.conn.Watch), nil
	case s.conn != nil && event == pollHup:
		return rdmacore.NewSource(func() bool { _, _, over := s.conn.State(); return over }, s.conn.Watch), nil
	}
	return rdmacore.Source{}, errNeverCame
}
