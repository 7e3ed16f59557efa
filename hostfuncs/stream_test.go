package hostfuncs

import (
	"syscall"
	"testing"

	"rdmarun/hostfuncs/stream"
)

const nameAt = 0x3800

// Two guests on one exchange send each other more than a stream holds, and one ends.
func TestStreamsBetweenGuests(t *testing.T) {
	for name, options := range clocks() {
		t.Run(name, func(t *testing.T) {
			exchange := stream.New()
			a := newInstance(t, 1<<20, Config{Participant: exchange.Participant("a")}, options...)
			b := instanceOn(t, 1<<20, Config{Provider: a.provider, Serial: 1, Participant: exchange.Participant("b")})
			const length = 100_000
			ended := make(chan bool)
			a.clock.Enter()
			a.clock.Enter()
			go func() {
				defer close(ended)
				defer a.clock.Leave()
				listener := must(t, b, "stream_listen", 7, 4)
				end := must(t, b, "stream_accept", listener, timeout)
				for at := uint64(0); at < length; {
					at += must(t, b, "stream_read", end, 0x8000+at, length-at, timeout)
				}
				must(t, b, "stream_write", end, 0x8000, 1, timeout)
				must(t, b, "stream_close", end)
			}()
			copy(a.memory[nameAt:], "b")
			end := must(t, a, "stream_connect", nameAt, 1, 7, timeout)
			for at := range length {
				a.memory[0x8000+at] = byte(at * 13)
			}
			for at := uint64(0); at < length; {
				at += must(t, a, "stream_write", end, 0x8000+at, length-at, timeout)
			}
			found(t, "an answer", polled(t, a, timeout, in(end)), pollIn|take[PollEntry](a, pollAt).Revents&pollHup)
			if n := must(t, a, "stream_read", end, bufferAt, 64, timeout); n != 1 {
				t.Errorf("%d bytes", n)
			}
			if n := must(t, a, "stream_read", end, bufferAt, 64, timeout); n != 0 {
				t.Errorf("%d bytes after the end", n)
			}
			expect(t, a, syscall.ECONNRESET, "stream_write", end, bufferAt, 1, timeout)
			a.clock.Leave()
			<-ended
			if got, want := b.memory[0x8000:][:length], a.memory[0x8000:][:length]; string(got) != string(want) {
				t.Error("the bytes are others")
			}
		})
	}
}

func TestStreamsAreChecked(t *testing.T) {
	i := newInstance(t, 1<<16, Config{})
	fdAt := uint64(len(i.memory))
	expect(t, i, syscall.ECONNREFUSED, "stream_connect", 0, 0, 7, 0)
	expect(t, i, syscall.ETIMEDOUT, "stream_connect", 0, 0, 7, 1000)
	expect(t, i, syscall.EINVAL, "stream_listen", 7, 0)
	expect(t, i, syscall.EINVAL, "stream_listen", 7, 129)
	listener := must(t, i, "stream_listen", 7, 1)
	expect(t, i, syscall.EADDRINUSE, "stream_listen", 7, 1)
	expect(t, i, syscall.ETIMEDOUT, "stream_accept", listener, 0)
	expect(t, i, syscall.ETIMEDOUT, "stream_accept", listener, 1000)
	found(t, "nobody", polled(t, i, 0, in(listener)), 0)
	end := must(t, i, "stream_connect", 0, 0, 7, 0) // a guest alone finds itself
	expect(t, i, syscall.ETIMEDOUT, "stream_connect", 0, 0, 7, 0)
	found(
		t, "a connection",
		polled(t, i, timeout, in(listener), PollEntry{Handle: Handle(end), Events: pollIn | pollOut}), pollIn, pollOut,
	)
	other := must(t, i, "stream_accept", listener, timeout)
	for name, c := range map[string]struct {
		function string
		words    []uint64
		want     syscall.Errno
	}{
		"read outside":          {"stream_read", []uint64{end, fdAt, 1, 0}, syscall.EFAULT},
		"read wraps around":     {"stream_read", []uint64{end, bufferAt, 1<<32 - 1, 0}, syscall.EFAULT},
		"write outside":         {"stream_write", []uint64{end, fdAt - 1, 2, 0}, syscall.EFAULT},
		"name outside":          {"stream_connect", []uint64{fdAt, 1, 7, 0}, syscall.EFAULT},
		"read of a listener":    {"stream_read", []uint64{listener, bufferAt, 1, 0}, syscall.EINVAL},
		"accept on an end":      {"stream_accept", []uint64{end, 0}, syscall.EINVAL},
		"nothing there":         {"stream_read", []uint64{end, bufferAt, 1, 0}, syscall.ETIMEDOUT},
		"nothing there in time": {"stream_read", []uint64{end, bufferAt, 1, 1000}, syscall.ETIMEDOUT},
		"no handle":             {"stream_close", []uint64{7}, syscall.EBADF},
	} {
		if got := call(t, i, c.function, c.words...); got != -int32(c.want) {
			t.Errorf("%s: %d (%v), not %v", name, got, i.lastError, c.want)
		}
	}
	must(t, i, "stream_close", listener)
	must(t, i, "stream_close", other)
	found(t, "the peer is gone", polled(t, i, timeout, PollEntry{Handle: Handle(end)}), pollHup)
	if used := i.budget.Used(); used.Handles != 1 {
		t.Errorf("%+v is charged", used)
	}
}
