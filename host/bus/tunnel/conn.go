// Package tunnel carries streams of bytes through a NATS server of the site.  A launcher's pipe connects to an agent
// that is started; a pair of subjects connects to one that waits on such a server.
//
// NATS delivers a message at most once, and forgets everything when it restarts.  So an end sends a part of a stream
// again until the other end acknowledges it, and then sends the next one.  A stream has ended when its other end is
// silent for too long.
//
// The reply subjects of NATS' own requests are not used. A sender would choose the subject of an answer, and a
// permission to respond permits any subject once. Both ends derive the other's subject from the names.
package tunnel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"rdmarun/host/bus"
	"rdmarun/host/printable"
)

// Options are how a server is reached, and what it is shown; files are those that NATS' own clients read.
type Options struct {
	// URL is nats://HOST:PORT, or several with commas between; a user with its password, or a token, may be before @.
	URL string
	// Creds has a user's JWT and the seed of its key, NKey a seed alone.
	Creds, NKey string
	// TLSCA has certificates of the authority that signs the server's; TLSCert and TLSKey are shown to the server.
	TLSCA, TLSCert, TLSKey string
	// Name is the name of the connection in the server's monitoring.
	Name string
}

const (
	// connectTime bounds an attempt to connect.
	connectTime = 5 * time.Second
	// connectAgain is how long to wait before the next one, once a server is gone that was there.
	connectAgain = 100 * time.Millisecond
	// pingEvery and maxPings detect that a cable is cut.
	pingEvery, maxPings = 2 * time.Second, 2
	// flushTime bounds the wait for the last messages.
	flushTime = time.Second
	// maxWords bounds how much of the server's errors is shown, in bytes.
	maxWords = 600
)

// Conn is a connection to a server.
type Conn struct {
	nats   *nats.Conn
	where  string
	closed chan struct{}

	mu   sync.Mutex
	last error // the last that the server has reported apart from answers
}

// Where is a URL without its user and password.
func Where(text string) string {
	all := strings.Split(text, ",")
	for i, each := range all {
		if _, host, found := strings.Cut(each, "@"); found {
			scheme, _, _ := strings.Cut(each, "://")
			if all[i] = host; scheme != each {
				all[i] = scheme + "://" + host
			}
		}
	}
	return strings.Join(all, ",")
}

// User is the user of a URL, of several the first's; "" where there is none, for example with a token.
func User(text string) string {
	first, _, _ := strings.Cut(text, ",")
	parsed, err := url.Parse(strings.TrimSpace(first))
	if err != nil || parsed.User == nil {
		return ""
	}
	if _, password := parsed.User.Password(); !password {
		return "" // a token, which is a secret
	}
	return parsed.User.Username()
}

// Check validates a URL; the error shows it without its user and password.
func Check(text string) error {
	for each := range strings.SplitSeq(text, ",") {
		parsed, err := url.Parse(strings.TrimSpace(each))
		if err != nil || parsed.Host == "" || !strings.Contains(" nats tls ws wss ", " "+parsed.Scheme+" ") {
			return fmt.Errorf("%q is not a URL of a NATS server", Where(text))
		}
	}
	return nil
}

// ErrNoServer means that no server answers at the URL.
var ErrNoServer = errors.New("no NATS server answers there")

// Connect connects to a server.  Once connected, it connects again whenever the server comes back.
func Connect(o Options) (*Conn, error) {
	if err := Check(o.URL); err != nil {
		return nil, err
	}
	c := &Conn{where: Where(o.URL), closed: make(chan struct{})}
	options := []nats.Option{
		nats.Name(o.Name), nats.Timeout(connectTime), nats.MaxReconnects(-1), nats.ReconnectWait(connectAgain),
		nats.ReconnectJitter(connectAgain, connectAgain), nats.PingInterval(pingEvery),
		nats.MaxPingsOutstanding(maxPings),
		nats.ClosedHandler(func(*nats.Conn) { close(c.closed) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.last = printable.Error(err, maxWords)
		}),
	}
	if o.Creds != "" {
		options = append(options, nats.UserCredentials(o.Creds))
	}
	if o.NKey != "" {
		key, err := nats.NkeyOptionFromSeed(o.NKey)
		if err != nil {
			return nil, fmt.Errorf("the key %s: %w", o.NKey, err)
		}
		options = append(options, key)
	}
	if o.TLSCA != "" {
		options = append(options, nats.RootCAs(o.TLSCA))
	}
	if o.TLSCert != "" || o.TLSKey != "" {
		options = append(options, nats.ClientCert(o.TLSCert, o.TLSKey))
	}
	var err error
	if c.nats, err = nats.Connect(o.URL, options...); errors.Is(err, nats.ErrNoServers) {
		return nil, fmt.Errorf("connect to %s: %w", c.where, ErrNoServer)
	} else if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", c.where, printable.Error(err, maxWords))
	}
	return c, nil
}

// Where is the URL of the server, without user and password.
func (c *Conn) Where() string { return c.where }

// Closed is closed once the connection has ended for good: it was closed, or the server does not take this user any
// more.
func (c *Conn) Closed() <-chan struct{} { return c.closed }

// Err is why it has ended.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return printable.Error(cmp.Or(c.nats.LastError(), c.last, nats.ErrConnectionClosed), maxWords)
}

// Close sends what is queued, and ends the connection.
func (c *Conn) Close() {
	if c.nats.IsConnected() {
		_ = c.nats.FlushTimeout(flushTime) // the receiver may be gone
	}
	c.nats.Close()
	<-c.closed
}

// explained adds to an error what the server has reported last: it reports a missing permission apart from the answer.
func (c *Conn) explained(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != nil && !errors.Is(err, c.last) {
		return fmt.Errorf("%w (%w)", err, c.last)
	}
	return err
}

// denied is the last error of the server if it denies a subject to this user.  All messages were flushed before, so
// the server has reported it by now; the error handler may not have run yet.
func (c *Conn) denied(subject string) error {
	last := c.nats.LastError()
	if last == nil || !strings.Contains(strings.ToLower(last.Error()), strings.ToLower(`"`+subject+`"`)) {
		return nil
	}
	return printable.Error(last, maxWords)
}

// listen calls take with each message under a subject; the server has the subscription when this returns.
func (c *Conn) listen(subject string, take nats.MsgHandler) (*nats.Subscription, error) {
	subscription, err := c.nats.Subscribe(subject, take)
	if err != nil {
		return nil, fmt.Errorf("listen to %s: %w", subject, c.explained(err))
	}
	if err = c.nats.FlushTimeout(connectTime); err == nil {
		err = c.denied(subject)
	} else {
		err = c.explained(err)
	}
	if err != nil {
		_ = subscription.Unsubscribe() // an error means that the connection has ended
		return nil, fmt.Errorf("listen to %s: %w", subject, err)
	}
	return subscription, nil
}

// Question is a request and its subjects.
type Question struct {
	// Subject is that of the request.  All answers come under Answers, of several with a wildcard.  NoResponders is one
	// of them: the server reports there that no process listens to the request.
	Subject, Answers, NoResponders string
	Data                           []byte
}

// Ask sends a request, and calls take for each of at most so many answers, with their subjects, until it returns false.
// bus.ErrNoResponder: no process could give one.  The processes that answer know the subject of the answer; the reply
// subject of the request is for the server alone.
func (c *Conn) Ask(
	ctx context.Context, q Question, most int, take func(subject string, answer []byte) (more bool),
) error {
	came := make(chan *nats.Msg, waiting)
	subscription, err := c.listen(q.Answers, func(said *nats.Msg) {
		select {
		case came <- said:
		default: // more than the question asks for
		}
	})
	if err != nil {
		return err
	}
	defer func() { _ = subscription.Unsubscribe() }() // an error means that the connection has ended
	if err = c.nats.PublishRequest(q.Subject, q.NoResponders, q.Data); err == nil {
		err = c.nats.FlushWithContext(ctx)
	}
	if err == nil {
		err = c.denied(q.Subject)
	}
	if err != nil {
		return c.explained(err)
	}
	for taken := 0; taken < most; {
		select {
		case said := <-came:
			switch unanswered := said.Header.Get("Status") == noResponders; {
			case unanswered && said.Subject == q.NoResponders:
				return bus.ErrNoResponder
			case unanswered:
			case !take(said.Subject, said.Data):
				return nil
			default:
				taken++
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.closed:
			return c.Err()
		}
	}
	return nil
}

const (
	// waiting is how many answers wait to be taken.
	waiting = 1 << 12
	// noResponders is the status of the server's own answer.
	noResponders = "503"
)

// Answer answers requests, one after another, until the connection ends: answer returns the subject, "" for no
// answer.
func (c *Conn) Answer(subject string, answer func(subject string, question []byte) (to string, said []byte)) error {
	_, err := c.listen(subject, func(asked *nats.Msg) {
		if to, said := answer(asked.Subject, asked.Data); to != "" {
			_ = c.nats.Publish(to, said) // the sender of the request may be gone
		}
	})
	return err
}
