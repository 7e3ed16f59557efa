// Package bustest gives tests a NATS server as a lab has one: it listens, and is not of the program that is tested.
package bustest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// The key of tests, which opens nothing but their servers.
const (
	public = "UA446FVICGM22K3N6QI6UMGFZ6VW3WOQ4JAWZYKZPSS3ITZCGGUYMU3S"
	seed   = "SUAORIRFISVUUFQ3TJKK2FTU37JNVCMXW4G2ATAAT2UYTUYUK3DIZS53LU"
)

// startTime bounds the start of a server.
const startTime = 30 * time.Second

// Config is how a server authenticates; the zero Config accepts every client.
type Config struct {
	User, Password, Token string
	// NKey: the server accepts one key.  Its seed is in the file Server.Seed.
	NKey bool
	// File is a configuration of NATS' own, in place of a user and a token.
	File string
	// TLS has it show a certificate, which the one in the file Server.CA has signed.
	TLS bool
}

// Main is the program nats-server, with its own flags, for tests that need it as a process.
func Main() {
	flags := flag.NewFlagSet("nats-server", flag.ExitOnError)
	options, err := server.ConfigureOptions(
		flags, os.Args[1:], server.PrintServerAndExit, flags.Usage, server.PrintTLSHelpAndDie,
	)
	if err != nil {
		server.PrintAndDie("nats-server: " + err.Error())
	}
	running, err := server.NewServer(options)
	if err != nil {
		server.PrintAndDie("nats-server: " + err.Error())
	}
	running.Start()
	running.WaitForShutdown()
}

// Server is a server on a port of 127.0.0.1, which it keeps when it is started again.
type Server struct {
	// Address is HOST:PORT.
	Address string
	// Seed and CA are files, where the Config asks for them.
	Seed, CA string

	t       testing.TB
	options server.Options
	running *server.Server
}

// Start starts a server, which ends with the test.
func Start(t testing.TB, config Config) *Server {
	t.Helper()
	s := &Server{t: t, options: server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
		Username: config.User, Password: config.Password, Authorization: config.Token,
	}}
	if config.File != "" {
		read, err := server.ProcessConfigFile(s.write("nats.conf", []byte(config.File)))
		s.must(err)
		read.Host, read.Port, read.NoSigs, read.NoLog = s.options.Host, s.options.Port, true, true
		s.options = *read
	}
	if config.NKey {
		s.Seed, s.options.Nkeys = s.write("user.nk", []byte(seed)), []*server.NkeyUser{{Nkey: public}}
	}
	if config.TLS {
		s.certificate()
	}
	t.Cleanup(s.Stop)
	s.Start()
	return s
}

// URL is nats://HOST:PORT, with the credentials and @ if they are not empty.
func (s *Server) URL(user string) string {
	if user != "" {
		user += "@"
	}
	return "nats://" + user + s.Address
}

// Client publishes and subscribes on a server as far as that permits its user.
type Client struct {
	t    testing.TB
	conn *nats.Conn

	mu       sync.Mutex
	received []string
}

// Client connects with these credentials, which are before @ in the URL.
func (s *Server) Client(user string) *Client {
	s.t.Helper()
	conn, err := nats.Connect(s.URL(user), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	s.must(err)
	s.t.Cleanup(conn.Close)
	return &Client{t: s.t, conn: conn}
}

// denied is what the server has refused last if it is of a subject, once it has had everything.
func (c *Client) denied(subject string) error {
	c.t.Helper()
	if err := c.conn.FlushTimeout(startTime); err != nil {
		c.t.Fatal(err)
	}
	if last := c.conn.LastError(); last != nil &&
		strings.Contains(strings.ToLower(last.Error()), strings.ToLower(`"`+subject+`"`)) {
		return last
	}
	return nil
}

// Subscribe subscribes to a subject; an error means that it is not permitted.
func (c *Client) Subscribe(subject string) error {
	c.t.Helper()
	_, err := c.conn.Subscribe(subject, func(said *nats.Msg) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.received = append(c.received, said.Subject+" "+string(said.Data))
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.denied(subject)
}

// Say publishes under a subject, with a reply subject or none; an error means that it is not permitted.
func (c *Client) Say(subject, reply string, data []byte) error {
	c.t.Helper()
	if err := c.conn.PublishMsg(&nats.Msg{Subject: subject, Reply: reply, Data: data}); err != nil {
		c.t.Fatal(err)
	}
	return c.denied(subject)
}

// Received are the messages that have come: their subjects and data.
func (c *Client) Received() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.received)
}

// Start starts it, again if it was stopped.  A client's own end may have got the port meanwhile: it is tried until
// startTime.
func (s *Server) Start() {
	s.t.Helper()
	for end := time.Now().Add(startTime); ; {
		var err error
		if s.running, err = server.NewServer(&s.options); err != nil {
			s.t.Fatal(err)
		}
		s.running.Start()
		if s.running.ReadyForConnections(startTime / 10) {
			break
		}
		if time.Now().After(end) {
			s.t.Fatal("the NATS server is not ready")
		}
		s.Stop()
	}
	at := s.running.Addr().(*net.TCPAddr)
	s.Address, s.options.Port = at.String(), at.Port
}

// Stop stops it.
func (s *Server) Stop() {
	if s.running != nil {
		s.running.Shutdown()
		s.running.WaitForShutdown()
		s.running = nil
	}
}

func (s *Server) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) write(name string, data []byte) string {
	path := filepath.Join(s.t.TempDir(), name)
	s.must(os.WriteFile(path, data, 0o600))
	return path
}

func (s *Server) certificate() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s.must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	s.must(err)
	s.CA = s.write("ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}))
	s.options.TLSConfig = &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{signed}, PrivateKey: key}}, MinVersion: tls.VersionTLS12,
	}
}
