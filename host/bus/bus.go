// Package bus carries messages between the processes of a run, by NATS.  The server is in one process; the
// others connect to it over any stream of bytes.
//
// A member of the bus has a name.  It publishes under From(its name) only, so that it cannot send in another's name.
// It subscribes to To(its name) and To(AllMembers).  The process with the server forwards from the one to the other.
package bus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// AllMembers is all members.
const AllMembers = "all"

// from begins the subjects under which members publish.
const from = "rdmarun.from."

// From is a subject under which a member publishes.
func From(name, what string) string { return from + name + "." + what }

// To is a subject to which a member subscribes.
func To(name, what string) string { return "rdmarun.to." + name + "." + what }

// Sender is the member that publishes under a subject of From.
func Sender(subject string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(subject, from), ".")
	return name
}

// inbox is where answers to questions of a member come.
func inbox(name string) string { return "_INBOX." + name }

// Largest is how many bytes a message may have.
const Largest = largest - 4<<10 // what NATS itself adds to it is less

// Conn is a connection to the bus.
type Conn struct {
	nats   *nats.Conn
	name   string
	server *Server // in this process; nil for a member elsewhere
	closed chan struct{}
	why    atomic.Pointer[error] // this process has ended it
}

// errBehind means that the connection has ended because this process did not take its messages.  To drop one instead
// would block a receiver forever.
var errBehind = fmt.Errorf("more than %d messages wait for this process", waiting)

// connectTime bounds each attempt to connect, on a machine that has much else to do.
const connectTime = 30 * time.Second

func connect(who Credentials, options ...nats.Option) (*Conn, error) {
	c := &Conn{name: who.Name, closed: make(chan struct{})}
	options = append(options, nats.Name(who.Name), nats.UserInfo(who.Name, who.Secret), nats.CustomInboxPrefix(
		inbox(who.Name),
	),
		nats.NoReconnect(), nats.Timeout(connectTime), nats.ClosedHandler(func(*nats.Conn) { close(c.closed) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrSlowConsumer) {
				c.why.CompareAndSwap(nil, &errBehind)
				go c.Abandon() // it waits for this handler
			}
		}),
	)
	var err error
	// The stream is given, and the address is not used; nats would look up a name nevertheless.
	c.nats, err = nats.Connect("nats://127.0.0.1", options...)
	if err != nil {
		return nil, fmt.Errorf("connect to the bus: %w", err)
	}
	return c, nil
}

// Over connects as a member over a stream to a Server.
func Over(who Credentials, stream io.ReadWriteCloser) (*Conn, error) {
	return connect(who, nats.SetCustomDialer(&once{stream: stream}))
}

// Name is the member's.
func (c *Conn) Name() string { return c.name }

// Closed is closed once the connection is.
func (c *Conn) Closed() <-chan struct{} { return c.closed }

// Close sends what is queued, and ends the connection.
func (c *Conn) Close() {
	_ = c.nats.FlushTimeout(connectTime)
	c.nats.Close()
	<-c.closed
}

// Err is why this process has ended the connection by itself; nil: it has not.
func (c *Conn) Err() error {
	if why := c.why.Load(); why != nil {
		return *why
	}
	return nil
}

// Abandon ends the connection at once, and drops what is queued.
func (c *Conn) Abandon() { c.nats.Close() }

// ErrClosed means that the connection has ended.
var ErrClosed = nats.ErrConnectionClosed

// ErrNoResponder means that no process listens that could answer.
var ErrNoResponder = errors.New("no process answers")

// ErrTooLong means that a message has more bytes than Largest.
var ErrTooLong = errors.New("the message is too long")

// Publish sends data under a subject.
func (c *Conn) Publish(subject string, data []byte) error {
	if len(data) > Largest {
		return ErrTooLong
	}
	return c.nats.Publish(subject, data)
}

// Request asks under a subject, and waits for the answer.
func (c *Conn) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	if len(data) > Largest {
		return nil, ErrTooLong
	}
	answer, err := c.nats.RequestWithContext(ctx, subject, data)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, ErrNoResponder
	case err != nil:
		return nil, err
	}
	return answer.Data, nil
}

// askAgain is how long to wait before the next request to a process that does not listen yet.
const askAgain = 5 * time.Millisecond

// Await is Request that waits until a process listens to the subject.
func (c *Conn) Await(ctx context.Context, subject string, data []byte) ([]byte, error) {
	for {
		answer, err := c.Request(ctx, subject, data)
		if !errors.Is(err, ErrNoResponder) {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ErrNoResponder, context.Cause(ctx))
		case <-time.After(askAgain):
		}
	}
}

// Message is a message and its subject.
type Message struct {
	Subject string
	Data    []byte
	respond func([]byte) error
}

// Respond answers a question; what is none has no answer.
func (m *Message) Respond(data []byte) error {
	switch {
	case len(data) > Largest:
		return ErrTooLong
	case m.respond == nil:
		return errNotRequest
	}
	return m.respond(data)
}

// message is a message of NATS.  A sender chooses where its answer goes, and this process may publish anywhere.  So the
// answer to a member must go to the member's own inbox; with any other reply subject the message cannot be answered.
func message(came *nats.Msg) *Message {
	respond := came.Respond
	if strings.HasPrefix(came.Subject, from) && !strings.HasPrefix(came.Reply, inbox(Sender(came.Subject))+".") {
		respond = nil
	}
	return &Message{came.Subject, came.Data, respond}
}

// errNotRequest means that the sender does not wait for an answer.
var errNotRequest = errors.New("the message does not expect a reply")

// waiting is how many messages a listener's queue holds.
const waiting = 1 << 16

// Listen calls take for each message under any of several subjects, in each sender's order, until the connection or the
// listening ends.  A member subscribes only once to a subject that may carry requests: NATS' server does not let it
// answer one that it got twice.
func (c *Conn) Listen(take func(*Message), subjects ...string) (stop func(), err error) {
	came := make(chan *nats.Msg, waiting)
	var all []*nats.Subscription
	unsubscribe := func() {
		for _, each := range all {
			_ = each.Unsubscribe() // an error means that the connection has ended
		}
	}
	for _, subject := range subjects {
		subscription, err := c.nats.ChanSubscribe(subject, came)
		if err != nil {
			unsubscribe()
			return nil, fmt.Errorf("listen: %w", err)
		}
		all = append(all, subscription)
	}
	// From here on no message is missed: the server has the subscriptions.
	if err := c.nats.FlushTimeout(connectTime); err != nil {
		unsubscribe()
		return nil, fmt.Errorf("listen: %w", err)
	}
	waited := func() {}
	if c.server != nil {
		waited = c.server.listens(came)
	}
	ended := make(chan struct{})
	go func() {
		defer waited()
		for running := true; running; {
			select {
			case each := <-came:
				take(message(each))
			case <-ended:
				running = false
			case <-c.closed:
				running = false
			}
		}
		for { // what has come is still handled: a sender may wait for an answer
			select {
			case each := <-came:
				take(message(each))
			default:
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		unsubscribe()
		_ = c.nats.FlushTimeout(connectTime) // or a sender waits for an answer
		close(ended)
	}), nil
}

// once is a dialer with one connection.
type once struct{ stream io.ReadWriteCloser }

// Dial implements nats.CustomDialer.
func (o *once) Dial(string, string) (net.Conn, error) {
	if o.stream == nil {
		return nil, errors.New("the connection was used")
	}
	conn := &streamConn{o.stream}
	o.stream = nil
	return conn, nil
}

// streamConn makes a connection of a stream, which has no addresses and no deadlines.  NATS sets deadlines for its
// writes; a write to a pipe without a reader ends with the process at either end.
type streamConn struct{ io.ReadWriteCloser }

func (*streamConn) LocalAddr() net.Addr              { return streamAddr{} }
func (*streamConn) RemoteAddr() net.Addr             { return streamAddr{} }
func (*streamConn) SetDeadline(time.Time) error      { return nil }
func (*streamConn) SetReadDeadline(time.Time) error  { return nil }
func (*streamConn) SetWriteDeadline(time.Time) error { return nil }

type streamAddr struct{}

func (streamAddr) Network() string { return "stream" }
func (streamAddr) String() string  { return "stream" }
