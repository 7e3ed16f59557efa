package bus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// served is a server with its own connection.
func served(t *testing.T) (*Server, *Conn) {
	t.Helper()
	server, err := NewServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	owner, err := server.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(owner.Close)
	return server, owner
}

// serve has the server serve a member; gone has the error with which it stops.
func serve(t *testing.T, server *Server, who Credentials, stream io.ReadWriteCloser) (gone <-chan error) {
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(t.Context(), who, stream) }()
	return ended
}

// join connects a member over a pipe; gone has the error with which the server stops to serve it.
func join(t *testing.T, server *Server, who Credentials) (conn *Conn, gone <-chan error) {
	t.Helper()
	here, there := net.Pipe()
	gone = serve(t, server, who, there)
	conn, err := Over(who, here)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn, gone
}

// say publishes something.
func say(t *testing.T, conn *Conn, subject string, data []byte) {
	t.Helper()
	if err := conn.Publish(subject, data); err != nil {
		t.Fatal(err)
	}
}

// listen calls f for each message, until stop or the end of the test.
func listen(t *testing.T, conn *Conn, f func(*Message), subjects ...string) (stop func()) {
	t.Helper()
	stop, err := conn.Listen(f, subjects...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return stop
}

// heard collects the messages.
func heard(t *testing.T, conn *Conn, subjects ...string) <-chan string {
	t.Helper()
	came := make(chan string, 100)
	listen(t, conn, func(m *Message) { came <- m.Subject + " " + string(m.Data) }, subjects...)
	return came
}

// next is what was said next.
func next(t *testing.T, said <-chan string) string {
	t.Helper()
	select {
	case text := <-said:
		return text
	case <-time.After(time.Minute):
		t.Fatal("nothing is said")
		return ""
	}
}

func TestMembers(t *testing.T) {
	server, owner := served(t)
	all := heard(t, owner, From("*", ">"))
	a, _ := join(t, server, Credentials{"a", "secret"})
	b, gone := join(t, server, Credentials{"b", "other"})
	toA, toB := heard(t, a, To("a", ">"), To(AllMembers, ">")), heard(t, b, To("b", ">"), To(AllMembers, ">"))
	for i := range 3 {
		say(t, a, From("a", "x"), fmt.Append(nil, i))
		if got, want := next(t, all), fmt.Sprint("rdmarun.from.a.x ", i); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	// Messages in another's name, or to others than the owner, are dropped; what follows arrives.
	for _, subject := range []string{From("b", "x"), To("b", "x"), To(AllMembers, "x"), "x", inbox("b") + ".x"} {
		say(t, a, subject, []byte("stolen"))
	}
	say(t, a, From("a", "y"), nil)
	if got := next(t, all); got != "rdmarun.from.a.y " {
		t.Errorf("%q", got)
	}
	// A member cannot subscribe to the messages for another.
	spied := heard(t, a, To("b", ">"), ">")
	for _, to := range []string{"b", AllMembers} {
		say(t, owner, To(to, "z"), []byte(to))
	}
	if got := []string{
		next(t, toB), next(t, toB), next(t, toA),
	}; strings.Join(got, "|") != "rdmarun.to.b.z b|rdmarun.to.all.z all|rdmarun.to.all.z all" {
		t.Errorf("%q", got)
	}
	if len(spied) > 0 {
		t.Errorf("a receives %s", <-spied)
	}
	server.Expel("b")
	if err := <-gone; err != nil {
		t.Error(err)
	}
	<-b.Closed()
}

func TestRequest(t *testing.T) {
	server, owner := served(t)
	stop := listen(t, owner, func(m *Message) {
		if Sender(m.Subject) == "a" {
			_ = m.Respond(append([]byte("you say "), m.Data...))
		}
	}, From("*", "ask"))
	a, _ := join(t, server, Credentials{"a", ""})
	if answer, err := a.Request(t.Context(), From("a", "ask"), []byte("hello")); err != nil ||
		string(answer) != "you say hello" {
		t.Errorf("%q %v", answer, err)
	}
	stop()
	stop()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := a.Request(ctx, From("a", "ask"), nil); !errors.Is(err, ErrNoResponder) {
		t.Errorf("%v", err)
	}
	if _, err := a.Request(ctx, From("a", "ask"), make([]byte, Largest+1)); !errors.Is(err, ErrTooLong) {
		t.Errorf("%v", err)
	}
	if err := a.Publish(From("a", "ask"), make([]byte, Largest+1)); !errors.Is(err, ErrTooLong) {
		t.Errorf("%v", err)
	}
}

// TestAnswers: a member says where an answer goes, and cannot have this process say it in the name of others, or to
// others.
func TestAnswers(t *testing.T) {
	server, owner := served(t)
	all := heard(t, owner, From("b", ">"))
	answered := make(chan error, 10)
	listen(t, owner, func(m *Message) { answered <- m.Respond([]byte("{}")) }, From("a", "ask"))
	a, _ := join(t, server, Credentials{"a", ""})
	b, _ := join(t, server, Credentials{"b", ""})
	spied := heard(t, b, To("b", ">"), To(AllMembers, ">"))
	for _, reply := range []string{
		From("b", "bye"), To("b", "order"), To(AllMembers, "gone"), inbox("b") + ".x", inbox("a"), "x",
	} {
		if err := a.nats.PublishRequest(From("a", "ask"), reply, nil); err != nil {
			t.Fatal(err)
		}
		if err := <-answered; !errors.Is(err, errNotRequest) {
			t.Errorf("%s: %v", reply, err)
		}
	}
	say(t, b, From("b", "last"), nil)
	if got := next(t, all); got != "rdmarun.from.b.last " || len(spied) > 0 {
		t.Errorf("%q, and b receives %d", got, len(spied))
	}
}

// TestTooLong: what has more bytes than a message may have is refused where it is said.
func TestTooLong(t *testing.T) {
	_, owner := served(t)
	long := make([]byte, Largest+1)
	asked := &Message{respond: func([]byte) error { return nil }}
	_, question := owner.Request(t.Context(), From("a", "ask"), long)
	for what, err := range map[string]error{
		"message": owner.Publish(From("a", "x"), long), "question": question, "answer": asked.Respond(long),
	} {
		if !errors.Is(err, ErrTooLong) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := errors.Join(owner.Publish(From("a", "x"), long[:Largest]), asked.Respond(long[:Largest])); err != nil {
		t.Error(err)
	}
}

// counted counts what is read of a member.
type counted struct {
	io.ReadWriteCloser
	read atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadWriteCloser.Read(p)
	c.read.Add(int64(n))
	return n, err
}

// TestFlood: of a member that says more than this process takes no more is read than there is room for, and nothing is
// lost.
func TestFlood(t *testing.T) {
	const size, count = 256 << 10, 800
	server, owner := served(t)
	here, there := net.Pipe()
	from := &counted{ReadWriteCloser: there}
	ended := serve(t, server, Credentials{"a", ""}, from)
	a, err := Over(Credentials{"a", ""}, here)
	if err != nil {
		t.Fatal(err)
	}
	taken, most, all := int64(0), int64(0), make(chan struct{})
	listen(t, owner, func(m *Message) {
		for end := time.Now().Add(time.Minute); taken == 0 && !server.Crowded() && time.Now().Before(end); time.Sleep(
			time.Millisecond,
		) {
			_ = end // the queue fills
		}
		most = max(most, from.read.Load()-taken*size)
		if taken++; taken == count {
			close(all)
		}
	}, From("a", ">"))
	for range count {
		say(t, a, From("a", "x"), make([]byte, size))
	}
	select {
	case <-all:
	case <-time.After(time.Minute):
		t.Fatal("not everything has come")
	}
	if most > maxPending+maxWaiting*size {
		t.Errorf("%dMiB have waited", most>>20)
	}
	a.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestMostListening: a member listens to some subjects, and not to as many as it likes, each of which costs the server
// memory. TestBehind: a member that does not take what it hears loses no message without a word: its connection ends,
// with the reason.
func TestBehind(t *testing.T) {
	server, owner := served(t)
	who := NewCredentials()
	member, gone := join(t, server, who)
	goOn, begun := make(chan bool), make(chan bool, 1)
	listen(t, member, func(*Message) {
		select {
		case begun <- true:
		default:
		}
		<-goOn
	}, To(who.Name, "news"))
	defer close(goOn)
	say(t, owner, To(who.Name, "news"), nil)
	<-begun
	for range waiting + 10 {
		say(t, owner, To(who.Name, "news"), nil)
	}
	<-member.Closed()
	<-gone
	if err := member.Err(); !errors.Is(err, errBehind) {
		t.Errorf("%v", err)
	}
	if owner.Err() != nil {
		t.Error("the server's own connection has ended, too")
	}
}

func TestMostListening(t *testing.T) {
	server, owner := served(t)
	a, _ := join(t, server, Credentials{"a", ""})
	for i := range 4 * maxListening {
		if _, err := a.nats.SubscribeSync(To("a", fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	_ = a.nats.Flush() // the server may have ended the connection
	if n := int(server.nats.NumSubscriptions()); n > 2*maxListening {
		t.Errorf("the server has %d subscriptions", n)
	}
	listen(t, owner, func(*Message) {}, From("*", "x"))
}

// TestExpelOthers: those who take no part hear nothing any more.
func TestExpelOthers(t *testing.T) {
	server, owner := served(t)
	a, _ := join(t, server, Credentials{"a", ""})
	b, gone := join(t, server, Credentials{"b", ""})
	toA := heard(t, a, To("a", ">"))
	server.ExpelOthers(func(name string) bool { return name == "a" })
	<-gone
	<-b.Closed()
	say(t, owner, To("a", "x"), nil)
	if got := next(t, toA); got != "rdmarun.to.a.x " || server.Present("b") {
		t.Errorf("%q", got)
	}
}

// TestStrangers: who does not know the secret, or has a name that cannot be one, does not come.
func TestStrangers(t *testing.T) {
	server, _ := served(t)
	here, there := net.Pipe()
	ended := serve(t, server, Credentials{"a", "secret"}, there)
	if _, err := Over(Credentials{"a", "guess"}, here); err == nil || !strings.Contains(err.Error(), "Authorization") {
		t.Errorf("%v", err)
	}
	<-ended
	join(t, server, Credentials{"a", "secret"})
	for name, want := range map[string]string{
		"a": `a member "a" already`, "b.c": `"b.c"`, "": `""`, ">": `">"`, strings.Repeat("x", 41): "xxx",
	} {
		_, there := net.Pipe()
		if err := server.Serve(t.Context(), Credentials{Name: name}, there); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestLastWords: what a member has said is heard before it is said that it has gone.
func TestLastWords(t *testing.T) {
	server, owner := served(t)
	all := heard(t, owner, From("*", ">"))
	server.OnLeave(func(name string) { _ = owner.Publish(From(name, "left"), nil) })
	for i := range 20 {
		name := fmt.Sprint("m", i)
		conn, gone := join(t, server, Credentials{Name: name})
		say(t, conn, From(name, "last"), nil)
		conn.Close()
		if got := next(t, all) + next(t, all); got != "rdmarun.from."+name+".last rdmarun.from."+name+".left " {
			t.Errorf("%q", got)
		}
		if err := <-gone; err != nil {
			t.Error(err)
		}
	}
}

// TestLastWordsOfDead: after the end of a member's stream, the server handles all its messages, and then reports that
// the member has left. A member that closes its connection waits for that itself; one that dies does not.
func TestLastWordsOfDead(t *testing.T) {
	const messages = 1000
	server, owner := served(t)
	all, left := 0, make(chan int, 1)
	listen(t, owner, func(m *Message) {
		if all++; m.Subject == From("m", "left") {
			left <- all - 1
			all = 0
		}
	}, From("*", ">"))
	server.OnLeave(func(name string) { _ = owner.Publish(From(name, "left"), nil) })
	words := []byte(strings.Repeat("PUB "+From("m", "last")+" 0\r\n\r\n", messages))
	for range 20 {
		here, there := net.Pipe()
		gone := serve(t, server, Credentials{Name: "m"}, there)
		if _, err := Over(Credentials{Name: "m"}, here); err != nil {
			t.Fatal(err)
		}
		if _, err := here.Write(words); err != nil {
			t.Fatal(err)
		}
		here.Close()
		select {
		case came := <-left:
			if came != messages {
				t.Errorf("%d of %d messages came before the leave", came, messages)
			}
		case <-time.After(time.Minute):
			t.Fatal("the member does not leave")
		}
		if err := <-gone; err != nil {
			t.Error(err)
		}
	}
}

// deaf is the stream of a member that may be unable to take anything, as that of a process that has died.
type deaf struct {
	net.Conn
	is     atomic.Bool
	failed chan struct{} // closed after the first message that it did not take
	once   sync.Once
}

func (d *deaf) Write(data []byte) (int, error) {
	if !d.is.Load() {
		return d.Conn.Write(data)
	}
	d.once.Do(func() { close(d.failed) })
	return 0, syscall.EPIPE
}

// TestLastWordsOfDeaf: messages that a member has sent arrive, and then its leave, although the server could not send
// to it meanwhile. It leaves also if its stream lasts.
func TestLastWordsOfDeaf(t *testing.T) {
	for name, ends := range map[string]bool{"its stream ends": true, "its stream lasts": false} {
		t.Run(name, func(t *testing.T) {
			server, owner := served(t)
			all := heard(t, owner, From("*", ">"))
			server.OnLeave(func(name string) { _ = owner.Publish(From(name, "left"), nil) })
			here, there := net.Pipe()
			stream := &deaf{Conn: there, failed: make(chan struct{})}
			gone := serve(t, server, Credentials{Name: "m"}, stream)
			conn, err := Over(Credentials{Name: "m"}, here)
			if err != nil {
				t.Fatal(err)
			}
			listen(t, conn, func(*Message) {}, To("m", "x"))
			stream.is.Store(true)
			say(t, owner, To("m", "x"), nil)
			<-stream.failed
			for i := range 50 {
				if _, err := fmt.Fprintf(here, "PUB %s 1\r\n%d\r\n", From("m", "last"), i%10); err != nil {
					t.Fatal(err)
				}
			}
			if ends {
				here.Close()
			}
			for i := range 50 {
				if got := next(t, all); got != fmt.Sprint("rdmarun.from.m.last ", i%10) {
					t.Fatalf("%d: %q", i, got)
				}
			}
			if got := next(t, all); got != "rdmarun.from.m.left " {
				t.Errorf("%q", got)
			}
			if err := <-gone; !errors.Is(err, syscall.EPIPE) {
				t.Error(err)
			}
		})
	}
}

// pipe is the two ends of a process's standard input and output.
type pipe struct {
	io.Reader
	io.WriteCloser
}

// TestProcess: a process over its standard input and output is a member, as over any stream.
func TestProcess(t *testing.T) {
	if os.Getenv("BUS_MEMBER") != "" {
		conn, err := Over(Credentials{"child", "secret"}, pipe{os.Stdin, os.Stdout})
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Publish(From("child", "here"), nil)
		<-conn.Closed()
		os.Exit(0)
	}
	server, owner := served(t)
	all := heard(t, owner, From("child", ">"))
	child := exec.Command(os.Args[0], "-test.run", "^TestProcess$")
	child.Env = append(os.Environ(), "BUS_MEMBER=1")
	child.Stderr = os.Stderr
	input, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	ended := serve(t, server, Credentials{"child", "secret"}, pipe{output, input})
	if got := next(t, all); got != "rdmarun.from.child.here " {
		t.Errorf("%q", got)
	}
	server.Expel("child")
	<-ended
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
}

// TestQuestions: the owner asks a member again and again.
func TestQuestions(t *testing.T) {
	server, owner := served(t)
	a, _ := join(t, server, Credentials{"a", ""})
	listen(t, a, func(m *Message) { _ = m.Respond(m.Data) }, To("a", "ask"))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for i := range 20 {
		if answer, err := owner.Request(ctx, To("a", "ask"), fmt.Append(nil, i)); err != nil ||
			string(answer) != fmt.Sprint(i) {
			t.Fatalf("%d: %q %v", i, answer, err)
		}
	}
}
