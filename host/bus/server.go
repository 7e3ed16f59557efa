package bus

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Server is a NATS server in this process.  It listens nowhere: it serves the connections that it is given, each for
// one member of the bus.
type Server struct {
	nats *server.Server

	mu      sync.Mutex
	members map[string]*member // by their names
	leave   []func(name string)
	queues  []chan *nats.Msg // messages of members that this process has not yet taken
}

// member is a process that may connect to the bus.
type member struct {
	credentials Credentials
	// owner may do anything: it is this process itself.
	owner bool
	close func()
}

// Credentials authenticate a member.
type Credentials struct{ Name, Secret string }

// nameForm is that of a member: a token of a subject.
var nameForm = regexp.MustCompile(`^[0-9a-z]{1,40}$`)

// NewCredentials draws a name and a secret.
func NewCredentials() Credentials {
	var drawn [24]byte
	_, _ = rand.Read(drawn[:]) // never fails
	return Credentials{fmt.Sprintf("%x", drawn[:8]), fmt.Sprintf("%x", drawn[8:])}
}

const (
	// startTime bounds the start of the server, which opens nothing, and its end.
	startTime = 10 * time.Second
	// largest bounds a message in bytes; more goes in parts.
	largest = 1 << 20
	// maxPending bounds what waits for a member that does not read, maxListening to how many subjects one listens.
	maxPending, maxListening = 64 << 20, 256
	// maxWaiting is how many messages may wait for this process before no more is read of members, and crowdedTime how
	// often it looks then.
	maxWaiting, crowdedTime = 64, time.Millisecond
	// lastTime bounds how long the server takes for the last messages of a member, and how long it reads from one that
	// takes nothing more.
	lastTime = 2 * time.Second
	// responseTime is how long a process may take to answer: as long as a run.
	responseTime = 24 * time.Hour
)

// NewServer starts a server.
func NewServer() (*Server, error) {
	s := &Server{members: make(map[string]*member)}
	var err error
	s.nats, err = server.NewServer(&server.Options{
		ServerName: "rdmarun", DontListen: true, NoSigs: true, NoLog: true, MaxPayload: largest,
		MaxPending:                 maxPending,
		MaxSubs:                    maxListening, // of a connection
		CustomClientAuthentication: s,
	})
	if err != nil {
		return nil, fmt.Errorf("start the NATS server: %w", err)
	}
	s.nats.Start()
	if !s.nats.ReadyForConnections(startTime) {
		s.nats.Shutdown()
		return nil, errors.New("start the NATS server: it is not ready")
	}
	return s, nil
}

// Close ends the server, and with it each connection.
func (s *Server) Close() {
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
}

// OnLeave calls left for each member after its connection has ended.
func (s *Server) OnLeave(left func(name string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave = append(s.leave, left)
}

// Check implements server.Authentication: a member has its secret, and may publish in its own name only.
func (s *Server) Check(who server.ClientAuthentication) bool {
	given := who.GetOpts()
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.members[given.Username]
	if found == nil || subtle.ConstantTimeCompare([]byte(found.credentials.Secret), []byte(given.Password)) == 0 {
		return false
	}
	user := &server.User{Username: given.Username}
	if !found.owner {
		user.Permissions = permissions(given.Username)
	}
	who.RegisterUser(user)
	return true
}

// permissions limit a member to publishing in its own name, and to subscribing to what is for it.
func permissions(name string) *server.Permissions {
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: []string{From(name, ">")}},
		Subscribe: &server.SubjectPermission{Allow: []string{To(name, ">"), To(AllMembers, ">"), inbox(name) + ".>"}},
		Response:  &server.ResponsePermission{MaxMsgs: 1, Expires: responseTime},
	}
}

// admit adds a member; false when there is one of that name.
func (s *Server) admit(m *member) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.members[m.credentials.Name] != nil {
		return false
	}
	s.members[m.credentials.Name] = m
	return true
}

// dismiss removes a member that has gone, and calls the functions of OnLeave.
func (s *Server) dismiss(name string) {
	s.mu.Lock()
	delete(s.members, name)
	callbacks := slices.Clone(s.leave)
	s.mu.Unlock()
	for _, left := range callbacks {
		left(name)
	}
}

// Connect is a connection of this process itself, which may publish and subscribe to anything.
func (s *Server) Connect() (*Conn, error) {
	who := &member{credentials: NewCredentials(), owner: true}
	s.admit(who)
	conn, err := connect(who.credentials, nats.InProcessServer(s.nats))
	if err == nil {
		conn.server = s
	}
	return conn, err
}

// listens notes that messages for this process wait in a queue, until stop.
func (s *Server) listens(queue chan *nats.Msg) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues = append(s.queues, queue)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.queues = slices.DeleteFunc(s.queues, func(each chan *nats.Msg) bool { return each == queue })
	}
}

// Crowded reports whether too many messages wait for this process.  While they do, it does not read from members.
func (s *Server) Crowded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.queues, func(queue chan *nats.Msg) bool { return len(queue) > maxWaiting })
}

// paced reads from a member no faster than this process takes the messages.  Otherwise a member that sends much, and
// waits for nothing, would fill the memory.
type paced struct {
	io.Reader
	server *Server
	ctx    context.Context
}

func (p *paced) Read(to []byte) (int, error) {
	for p.server.Crowded() && p.ctx.Err() == nil {
		select {
		case <-p.ctx.Done():
		case <-time.After(crowdedTime):
		}
	}
	return p.Reader.Read(to)
}

// Serve carries the connection of a member until it ends, from either side or with ctx.  It closes the connection.
func (s *Server) Serve(ctx context.Context, who Credentials, conn io.ReadWriteCloser) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !nameForm.MatchString(who.Name) || !s.admit(&member{credentials: who, close: cancel}) {
		_ = conn.Close()
		return fmt.Errorf("the bus has a member %q already", who.Name)
	}
	defer s.dismiss(who.Name)
	inside, err := s.nats.InProcessConn()
	if err != nil {
		_ = conn.Close()
		return fmt.Errorf("the NATS server: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _, _ = inside.Close(), conn.Close() })
	defer stop()
	var copies sync.WaitGroup
	var reading, writing error
	copies.Go(func() {
		_, reading = io.Copy(inside, &paced{conn, s, ctx})
		// The pipe has no buffer: once the server takes this, it has handled all earlier bytes.
		_ = inside.SetWriteDeadline(time.Now().Add(lastTime))
		_, _ = inside.Write([]byte("PING\r\n"))
		cancel()
	})
	copies.Go(func() {
		_, writing = io.Copy(conn, inside)
		if writing != nil { // a member that has ended may have sent messages before, which are read to their end
			defer time.AfterFunc(lastTime, cancel).Stop()
			_, _ = io.Copy(io.Discard, inside) // or the server would not read
		}
		cancel()
	})
	copies.Wait()
	for _, err := range []error{reading, writing} {
		if err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.ErrClosedPipe) {
			return err
		}
	}
	return nil
}

// Present reports whether a member is connected.
func (s *Server) Present(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.members[name] != nil
}

// Expel ends the connection of a member.
func (s *Server) Expel(name string) {
	s.mu.Lock()
	who := s.members[name]
	s.mu.Unlock()
	if who != nil && who.close != nil {
		who.close()
	}
}

// ExpelOthers ends the connections of all members that keep does not name; those of this process stay.
func (s *Server) ExpelOthers(keep func(name string) bool) {
	s.mu.Lock()
	var others []*member
	for name, who := range s.members {
		if !who.owner && !keep(name) {
			others = append(others, who)
		}
	}
	s.mu.Unlock()
	for _, who := range others {
		who.close()
	}
}
