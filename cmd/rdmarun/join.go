package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rdmarun/host/bus/tunnel"
	"rdmarun/host/lab"
	"rdmarun/host/lab/join"
	"rdmarun/host/printable"
)

// natsFlags are how a NATS server is reached; their words are those of its own command line.
type natsFlags struct {
	url, user                           string
	creds, nkey, tlsCA, tlsCert, tlsKey string
}

func (f *natsFlags) register(command *cobra.Command, name, usage string) {
	set := command.Flags()
	set.StringVar(&f.url, name, "", usage)
	if name == "nats" { // a controller's
		set.StringVar(
			&f.user, "nats-user", "",
			"the user in the subjects of this run (default: that of the URL, or your login name)",
		)
		completeFlag(command, "nats-user", cobra.NoFileCompletions)
	}
	set.StringVar(&f.creds, "creds", "", "authenticate to the NATS server with the credentials in this file")
	set.StringVar(&f.nkey, "nkey", "", "authenticate to the NATS server with the key of the seed in this file")
	set.StringVar(&f.tlsCA, "tlsca", "", "the NATS server's certificate is signed by one in this file")
	set.StringVar(&f.tlsCert, "tlscert", "", "authenticate to the NATS server with the certificate in this file")
	set.StringVar(&f.tlsKey, "tlskey", "", "the key of --tlscert")
	completeFlag(command, name, cobra.NoFileCompletions)
	command.MarkFlagsRequiredTogether("tlscert", "tlskey")
}

// natsWords are the flags in addition to the URL.
var natsWords = []string{"creds", "nkey", "tlsca", "tlscert", "tlskey"}

// files are the files that the flags name, by these.
func (f *natsFlags) files() map[string]string {
	return map[string]string{
		"creds": f.creds, "nkey": f.nkey, "tlsca": f.tlsCA, "tlscert": f.tlsCert, "tlskey": f.tlsKey,
	}
}

// connect connects to a server; name is shown there.
func (f *natsFlags) connect(flag, url, name string) (*tunnel.Conn, error) {
	if err := tunnel.Check(url); err != nil {
		return nil, withHint(
			usageError("--%s: %w", flag, err),
			"for example nats://lab.example:4222; a password is best given in the environment: RDMARUN_"+
				strings.ToUpper(flag),
		)
	}
	conn, err := tunnel.Connect(tunnel.Options{
		URL: url, Creds: f.creds, NKey: f.nkey, TLSCA: f.tlsCA, TLSCert: f.tlsCert, TLSKey: f.tlsKey, Name: name,
	})
	var untrusted *tls.CertificateVerificationError
	var unreached net.Error
	switch {
	case errors.Is(err, tunnel.ErrNoServer), errors.As(err, &unreached):
		return nil, withHint(
			withExit(exitEnvironment, err),
			"is nats-server running there, and does a firewall let its port pass? It listens on 4222 unless set "+
				"otherwise",
		)
	case errors.As(err, &untrusted):
		return nil, withHint(
			withExit(exitEnvironment, err),
			"--tlsca FILE has the certificate of who has signed the server's, or the server's own where it has "+
				"signed that itself",
		)
	case err != nil:
		return nil, withHint(
			withExit(exitEnvironment, err),
			"credentials are given as to NATS' own clients: USER:PASSWORD@ or TOKEN@ in the URL, --creds, --nkey, "+
				"--tlscert",
		)
	}
	return conn, nil
}

// holder names the owner of this run to others.
func holder() string {
	host := "somewhere"
	if found, err := os.Hostname(); err == nil {
		host = found
	}
	return fmt.Sprintf("%s@%s (process %d)", login(), host, os.Getpid())
}

// login is the user of this process.
func login() string {
	who, err := user.Current()
	if err != nil {
		return "unknown"
	}
	return who.Username
}

// standing connects to the NATS server of a lab; nil where no host of it has joined one.
func (f *labFlags) standing(a *app, read *lab.Lab) (*join.Lab, error) {
	url := f.nats.url
	if url == "" {
		url = read.NATS
	}
	switch {
	case f.file != "" && !read.Joins() && f.nats.url != "" && f.nats.url != f.ambient: // which is for other labs, too
		return nil, withHint(
			usageError("--nats: no host of %s has joined it", f.file), "join: NAME of a host is its agent's name there",
		)
	case f.file != "" && !read.Joins():
		return nil, nil
	case url == "":
		return nil, withHint(
			usageError("%s: hosts have joined a NATS server, and nothing says which", f.file),
			"nats: URL in the lab file, or --nats URL",
		)
	}
	conn, err := f.nats.connect("nats", url, "rdmarun run")
	if err != nil {
		return nil, err
	}
	f.close = conn.Close
	standing := join.New(conn, cmp.Or(f.nats.user, tunnel.User(url), login()), holder())
	standing.Say = func(text string) { fmt.Fprintf(a.stderr, "rdmarun: %s\n", printable.Log(text)) }
	if f.isSet("wait") {
		standing.Wait = f.wait()
	}
	return standing, nil
}

// gather adds the agents' descriptions to a lab: without a file they are its hosts.
func (f *labFlags) gather(ctx context.Context, read *lab.Lab) error {
	var wanted []string
	if f.file == "" {
		wanted = lab.NamesIn(f.places)
	}
	for _, host := range read.Hosts {
		if host.Join != "" {
			wanted = append(wanted, host.Join)
		}
	}
	present, err := f.joined.Agents(ctx, wanted...)
	if err != nil {
		return withExit(exitEnvironment, err)
	}
	if f.file == "" && len(present) == 0 {
		return withHint(
			withExit(exitEnvironment, fmt.Errorf("no agent waits on %s", f.joined.Conn.Where())),
			"on each host: rdmarun agent --join URL --name NAME",
		)
	}
	for _, agent := range present {
		if f.file == "" {
			read.Hosts = append(read.Hosts, lab.Host{Name: agent.Name, Join: agent.Name})
		}
		read.Joined(agent.Name, agent.Labels)
	}
	return nil
}

// joinFlags are those of an agent that waits on a NATS server.
type joinFlags struct {
	nats   natsFlags
	name   string
	labels map[string]string
}

func (f *joinFlags) register(command *cobra.Command) {
	f.nats.register(command, "join", "wait on the NATS server at this URL for controllers, and serve one run at a time")
	command.Flags().StringVar(&f.name, "name", "", "what this host is called there (default: its host name)")
	command.Flags().StringToStringVar(&f.labels, "label", nil, "a label of this host, rack=r1 (repeatable)")
}

// serve waits for controllers, for each of which a process of its own plays roles.
func (f *joinFlags) serve(ctx context.Context, a *app, allow []string, sandbox *sandboxFlag) error {
	if f.name == "" {
		found, err := os.Hostname()
		if err != nil {
			return withHint(withExit(exitEnvironment, err), "--name says what this host is called")
		}
		f.name = found
	}
	if err := join.CheckName(f.name); err != nil {
		return usageError("--name: %w", err)
	}
	if err := join.CheckLabels(f.labels); err != nil {
		return usageError("--label: %w", err)
	}
	program, err := os.Executable()
	if err != nil {
		return withExit(exitEnvironment, err)
	}
	conn, err := f.nats.connect("join", f.nats.url, "rdmarun agent "+f.name)
	if err != nil {
		return err
	}
	defer conn.Close()
	words := []string{os.Args[0], "agent", "--stdio", "--sandbox", sandbox.value}
	if allow != nil {
		words = append(words, "--allow", strings.Join(allow, ","))
	}
	err = join.Serve(ctx, conn, join.Config{
		Name: f.name, Version: buildVersion().Version, Labels: f.labels, Program: program, Words: words,
		Environment: f.environment(a),
		Log: func(text string) {
			fmt.Fprintf(a.stderr, "rdmarun: agent: %s: %s\n", time.Now().Format(time.DateTime), printable.Log(text))
		},
	})
	return withExit(exitEnvironment, err)
}

// environment is that of the process that plays roles.  It does not connect to the server, and must not reveal the
// credentials.
func (f *joinFlags) environment(a *app) []string {
	env := maps.Clone(a.env)
	for _, flag := range append([]string{"join", "name", "label", "allow"}, natsWords...) {
		delete(env, environmentName(flag))
	}
	return environmentPairs(env)
}
