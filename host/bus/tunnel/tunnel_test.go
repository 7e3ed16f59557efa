package tunnel

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"rdmarun/host/bus"
	"rdmarun/host/bus/bustest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// waitLimit bounds what must come at all.
const waitLimit = time.Minute

func connected(t *testing.T, server *bustest.Server) *Conn {
	t.Helper()
	conn, err := Connect(Options{URL: server.URL(""), Name: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// joined are the two ends of a stream over two connections; notes are those that the second hears.
func joined(t *testing.T, server *bustest.Server, silence time.Duration) (one, other *Stream, notes <-chan string) {
	t.Helper()
	heard := make(chan string, 10)
	var err error
	if one, err = connected(t, server).Open("one", "other", silence, nil); err != nil {
		t.Fatal(err)
	}
	note := func(what string, data []byte) { heard <- what + " " + string(data) }
	if other, err = connected(t, server).Open("other", "one", silence, note); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		one.Close()
		other.Close()
	})
	return one, other, heard
}

func ended(t *testing.T, s *Stream) error {
	t.Helper()
	select {
	case <-s.Done():
	case <-time.After(waitLimit):
		t.Fatal("it does not end")
	}
	return s.Err()
}

// TestStream: all that is written is read, in order, in both directions at once, and its end, too. A server that
// restarts meanwhile loses nothing.
func TestStream(t *testing.T) {
	for name, restarts := range map[string]int{"a server that stays": 0, "a server that restarts": 3} {
		t.Run(name, func(t *testing.T) {
			server := bustest.Start(t, bustest.Config{})
			one, other, notes := joined(t, server, waitLimit)
			data := make([]byte, 3<<20)
			_, _ = rand.Read(data)
			write := func(to *Stream) <-chan error {
				done := make(chan error, 1)
				go func() {
					for part := range slicesOf(data, 100_000) {
						if _, err := to.Write(part); err != nil {
							done <- err
							return
						}
					}
					done <- to.CloseWrite()
				}()
				return done
			}
			there, back := write(one), write(other)
			for range restarts {
				server.Stop()
				server.Start()
			}
			answers := make(chan []byte, 1)
			go func() {
				got, _ := io.ReadAll(one)
				answers <- got
			}()
			got, err := io.ReadAll(other)
			if err != nil || !bytes.Equal(got, data) || !bytes.Equal(<-answers, data) {
				t.Errorf("%d bytes of %d, %v", len(got), len(data), err)
			}
			if err := errors.Join(<-there, <-back); err != nil {
				t.Error(err)
			}
			if restarts == 0 {
				one.Note("last", []byte("words"))
				if said := <-notes; said != "last words" {
					t.Errorf("%q", said)
				}
			}
			if _, err := one.Write([]byte("more")); err == nil {
				t.Error("there is more after the end")
			}
			one.Close()
			if err := ended(t, other); !errors.Is(err, errGone) && restarts == 0 {
				t.Error(err)
			}
		})
	}
}

// slicesOf are the parts of data, of so many bytes each.
func slicesOf(data []byte, length int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for at := 0; at < len(data); at += length {
			if !yield(data[at:min(at+length, len(data))]) {
				return
			}
		}
	}
}

// TestSilence: a server that is away, and an end that sends nothing, give different errors.
func TestSilence(t *testing.T) {
	server := bustest.Start(t, bustest.Config{})
	alone, err := connected(t, server).Open("alone", "nobody", 200*time.Millisecond, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := alone.Write([]byte("x")); err == nil ||
		!strings.Contains(err.Error(), "no message came through NATS") {
		t.Error(err)
	}
	alone.Close()
	one, other, _ := joined(t, server, 2*time.Second)
	server.Stop()
	for _, each := range []*Stream{one, other} {
		if err := ended(t, each); !strings.Contains(err.Error(), "is away for 2s") {
			t.Error(err)
		}
		if _, err := each.Read(make([]byte, 1)); err != io.EOF {
			t.Error(err)
		}
	}
}

// TestNonsense: an end that says what cannot be ends the stream.
func TestNonsense(t *testing.T) {
	server := bustest.Start(t, bustest.Config{})
	for _, subject := range []string{"one.part.7", "one.part.x", "one.part", "one.part.18446744073709551616"} {
		one, _, _ := joined(t, server, waitLimit)
		stranger := connected(t, server)
		if err := stranger.nats.Publish(subject, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := ended(t, one); !strings.Contains(err.Error(), "an invalid message") {
			t.Error(subject, err)
		}
	}
	one, other, notes := joined(t, server, waitLimit)
	stranger := connected(t, server)
	for _, subject := range []string{"other.what", "other.note", "other.note.long"} {
		data := make([]byte, 2*maxNote)
		if subject == "other.note" {
			data = nil
		}
		if err := stranger.nats.Publish(subject, data); err != nil {
			t.Fatal(err)
		}
	}
	if said := <-notes; said != " " {
		t.Errorf("%q", said)
	}
	if _, err := one.Write(nil); err != nil || other.Err() != nil {
		t.Error(err, other.Err())
	}
}

// TestRepeatedParts: an end acknowledges each repeat of a part, since the acknowledgement may have been lost, and reads
// the part once.
func TestRepeatedParts(t *testing.T) {
	server := bustest.Start(t, bustest.Config{})
	one, err := connected(t, server).Open("one", "other", waitLimit, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { one.Close() })
	other := connected(t, server)
	took, err := other.nats.SubscribeSync("other.took.*")
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range []struct{ number, text, read string }{
		{"1", "x", "x"}, {"1", "x", ""}, {"1", "x", ""}, {"2", "y", "y"}, {"1", "x", ""}, {"2", "y", ""},
		{"3", "z", "z"},
	} {
		if err := other.nats.Publish("one.part."+part.number, []byte(part.text)); err != nil {
			t.Fatal(err)
		}
		read := make([]byte, len(part.read))
		if _, err := io.ReadFull(one, read); err != nil || string(read) != part.read {
			t.Fatalf("%d: %q is read, not %q: %v", i, read, part.read, err)
		}
		if got, err := took.NextMsg(waitLimit); err != nil || got.Subject != "other.took."+part.number {
			t.Fatalf("%d: part %s is not acknowledged: %v, %v", i, part.number, got, err)
		}
	}
}

// TestTooMuch: an end that sends more notes than allowed ends the stream, with any text.
func TestTooMuch(t *testing.T) {
	for _, subject := range []string{"one.note.x", "one.alive", "one.nonsense", "one.part.1"} {
		server := bustest.Start(t, bustest.Config{})
		one, other, _ := joined(t, server, waitLimit)
		if subject == "one.part.1" { // one that has come
			go func() { _, _ = io.Copy(io.Discard, one) }()
			if _, err := other.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		stranger := connected(t, server)
		for end := time.Now().Add(waitLimit); one.Err() == nil && time.Now().Before(end); {
			if err := stranger.nats.Publish(subject, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		if err := ended(t, one); !errors.Is(err, errTooMuch) {
			t.Error(subject, err)
		}
	}
}

// TestCredentials: who is taken is what NATS' own clients say; what is refused is said without the password.
func TestCredentials(t *testing.T) {
	user := bustest.Start(t, bustest.Config{User: "lab", Password: "geheim"})
	token := bustest.Start(t, bustest.Config{Token: "geheim"})
	key := bustest.Start(t, bustest.Config{NKey: true})
	secure := bustest.Start(t, bustest.Config{TLS: true})
	noSeed := filepath.Join(t.TempDir(), "none")
	if err := os.WriteFile(noSeed, []byte("geheim"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"a password": {Options{URL: user.URL("lab:geheim")}, ""},
		"a wrong password": {
			Options{URL: user.URL("lab:geheim2")},
			"connect to nats://" + user.Address + ": nats: Authorization Violation",
		},
		"no password":        {Options{URL: user.URL("")}, "Authorization Violation"},
		"a token":            {Options{URL: token.URL("geheim")}, ""},
		"a wrong token":      {Options{URL: token.URL("geheim2")}, "Authorization Violation"},
		"a key":              {Options{URL: key.URL(""), NKey: key.Seed}, ""},
		"no key":             {Options{URL: key.URL("")}, "Authorization Violation"},
		"no seed":            {Options{URL: key.URL(""), NKey: noSeed}, "the key " + noSeed},
		"no credentials":     {Options{URL: key.URL(""), Creds: noSeed}, "connect to nats://"},
		"TLS":                {Options{URL: secure.URL(""), TLSCA: secure.CA}, ""},
		"TLS of nobody":      {Options{URL: secure.URL("")}, "certificate"},
		"no authority":       {Options{URL: secure.URL(""), TLSCA: noSeed}, "root certificate"},
		"no certificate":     {Options{URL: secure.URL(""), TLSCert: noSeed, TLSKey: noSeed}, "client certificate"},
		"no server":          {Options{URL: "nats://127.0.0.1:1"}, "connect to nats://127.0.0.1:1: "},
		"no URL":             {Options{URL: "lab:geheim@host"}, `"host" is not a URL of a NATS server`},
		"a scheme of others": {Options{URL: "http://lab:geheim@host"}, `"http://host" is not a URL of a NATS server`},
		"a wrong port":       {Options{URL: "nats://lab:geheim@host:x"}, `"nats://host:x" is not a URL of a NATS server`},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := Connect(test.options)
			switch {
			case err == nil && test.want != "":
				t.Error("it is taken")
			case err != nil &&
				(test.want == "" || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(test.want)) ||
					strings.Contains(err.Error(), "geheim")):
				t.Errorf("%v, not %q", err, test.want)
			}
			if err == nil {
				conn.Close()
			}
		})
	}
}

func TestQuestions(t *testing.T) {
	server := bustest.Start(t, bustest.Config{})
	asks := connected(t, server)
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	question := Question{Subject: "who.1", Answers: "to.*.1", NoResponders: "to.nobody.1", Data: []byte("you")}
	ask := func(ctx context.Context, most, wanted int) (all []string, err error) {
		err = asks.Ask(ctx, question, most, func(subject string, answer []byte) bool {
			all = append(all, subject+" "+string(answer))
			return len(all) < wanted
		})
		slices.Sort(all)
		return all, err
	}
	if all, err := ask(ctx, 10, 10); !errors.Is(err, bus.ErrNoResponder) || all != nil {
		t.Error(all, err)
	}
	for _, name := range []string{"a", "b", "c"} {
		err := connected(t, server).Answer("who.*", func(subject string, question []byte) (string, []byte) {
			return "to." + name + strings.TrimPrefix(subject, "who"), append(question, '!')
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, most := range []int{1, 2, 3} {
		for _, wanted := range []int{most, 10} {
			if all, err := ask(ctx, most, wanted); err != nil || len(all) != most {
				t.Error(all, err)
			}
		}
	}
	// An agent cannot report that no process listens, and an answer without a question is ignored.
	stranger := connected(t, server)
	if err := stranger.Answer("who.*", func(string, []byte) (string, []byte) { return "", nil }); err != nil {
		t.Fatal(err)
	}
	no := nats.NewMsg("to.d.1")
	no.Header.Set("Status", noResponders)
	_, err := stranger.nats.Subscribe("who.*", func(*nats.Msg) { _ = stranger.nats.PublishMsg(no) })
	if err = errors.Join(err, stranger.nats.Flush()); err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if all, err := ask(soon, 10, 10); !errors.Is(err, context.DeadlineExceeded) ||
		strings.Join(all, ", ") != "to.a.1 you!, to.b.1 you!, to.c.1 you!" {
		t.Error(all, err)
	}
}

func TestUser(t *testing.T) {
	for url, want := range map[string]string{
		"nats://lab:geheim@host": "lab", "nats://lab:geheim@host,nats://other:x@host2": "lab", "nats://token@host": "",
		"nats://host": "", "::": "",
	} {
		if got := User(url); got != want {
			t.Errorf("%s: %q, not %q", url, got, want)
		}
	}
}
