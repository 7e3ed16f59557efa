package rdmacore

import (
	"bytes"
	"context"
	"strings"
	"syscall"
	"testing"
	"time"
)

// registered is memory that one of the registering functions has registered.
func registered(t testing.TB, reg func(*Memory, int, int) (*MR, error)) (*Memory, *MR) {
	t.Helper()
	memory, err := NewMemory(4096)
	must(t, err)
	mr, err := reg(memory, 0, 4096)
	memory.Release()
	must(t, err)
	atEnd(t, mr.Dereg)
	return memory, mr
}

// The wrappers of rdma_verbs.h, end to end: send, write, read, and completions of each.
func TestMessages(t *testing.T) {
	client, server := connected(t)
	from, source := registered(t, client.id.RegMsgs)
	to, target := registered(t, server.id.RegMsgs)
	written, window := registered(t, server.id.RegWrite)
	_, readable := registered(t, server.id.RegRead)
	copy(from.Bytes(), "a message")

	must(t, server.id.PostRecv(1, Buffer{MR: target, Length: 64}))
	must(t, client.id.PostSend(2, Buffer{MR: source, Length: 9}, SendSignaled))
	for name, get := range map[string]func(context.Context) (WC, error){
		"send": client.id.GetSendComp, "receive": server.id.GetRecvComp,
	} {
		wc, err := get(bounded(t))
		must(t, err)
		if wc.Status != WCSuccess {
			t.Errorf("%s: %s", name, wc.Status)
		}
	}
	if !bytes.HasPrefix(to.Bytes(), []byte("a message")) {
		t.Errorf("received %q", to.Bytes()[:16])
	}
	must(
		t, client.id.PostWrite(3, Buffer{MR: source, Length: 9}, SendSignaled, Remote{window.Address(), window.RKey()}),
	)
	wc, err := client.id.GetSendComp(bounded(t))
	must(t, err)
	if wc.WRID != 3 || wc.Status != WCSuccess || !bytes.HasPrefix(written.Bytes(), []byte("a message")) {
		t.Errorf("write: %+v", wc)
	}
	must(
		t,
		client.id.PostRead(4, Buffer{MR: source, Length: 9}, SendSignaled, Remote{readable.Address(), readable.RKey()}),
	)
	wc, err = client.id.GetSendComp(bounded(t))
	must(t, err)
	if wc.WRID != 4 || wc.Status != WCSuccess || from.Bytes()[0] != 0 {
		t.Errorf("read: %+v", wc)
	}
}

// rdma_get_send_comp(3) waits forever for a request without completion; here until the context ends, and the
// error says why nothing came.
func TestUnsignaledIsNotWaitedForInVain(t *testing.T) {
	client, server := connected(t)
	_, source := registered(t, client.id.RegMsgs)
	_, target := registered(t, server.id.RegMsgs)
	must(t, server.id.PostRecv(1, Buffer{MR: target, Length: 64}))
	must(t, client.id.PostSend(2, Buffer{MR: source, Length: 9}, 0))
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err := client.id.GetSendComp(ctx)
	refused(t, err, context.DeadlineExceeded)
	if err == nil || !strings.Contains(err.Error(), "SEND_SIGNALED") {
		t.Errorf("%v does not say what was forgotten", err)
	}
}

// Where librdmacm would follow a NULL pointer or an assertion would end the program.
func TestMessageGuards(t *testing.T) {
	client, _ := connected(t)
	memory, mr := registered(t, client.id.RegMsgs)
	unbound := newID(t, client.channel, PortSpaceTCP)
	for _, reg := range []func(*Memory, int, int) (*MR, error){unbound.RegMsgs, unbound.RegRead, unbound.RegWrite} {
		_, err := reg(memory, 0, 64)
		refused(t, err, syscall.EINVAL)
	}
	for name, row := range map[string]struct {
		err  error
		want error
	}{
		"no QP":             {unbound.PostRecv(0, Buffer{MR: mr}), syscall.EINVAL},
		"no QP, vector":     {unbound.PostSendv(0, nil, 0), syscall.EINVAL},
		"no MR":             {client.id.PostSend(0, Buffer{}, 0), syscall.EBADF},
		"beyond the region": {client.id.PostRecv(0, Buffer{MR: mr, Offset: 4000, Length: 97}), syscall.EFAULT},
		"negative": {
			client.id.PostWrite(0, Buffer{MR: mr, Offset: -1, Length: 1}, 0, Remote{}), syscall.EFAULT,
		},
		"nil": {(*ID)(nil).PostReadv(0, nil, 0, Remote{}), syscall.EBADF},
	} {
		if row.err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		refused(t, row.err, row.want)
	}
	_, err := unbound.GetSendComp(bounded(t))
	refused(t, err, syscall.EINVAL)
}
