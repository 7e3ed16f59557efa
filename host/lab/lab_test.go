package lab

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"rdmarun/host/bus"
	"rdmarun/host/printable"
)

func parsed(t *testing.T, text string) *Lab {
	t.Helper()
	lab, wrong := parse("lab.yaml", []byte("rdmarun: lab/v1\n"+text))
	if wrong.Len() > 0 {
		t.Fatal(wrong.Sorted())
	}
	return lab
}

func TestHosts(t *testing.T) {
	lab := parsed(t, `
defaults: {provider: verbs, ssh: {user: lab, options: [StrictHostKeyChecking=no]}, labels: {site: x}}
hosts:
  a: {ssh: nodea.example, device: mlx5_0, address: 192.0.2.1, labels: {rack: r1}}
  b: {ssh: {host: nodeb.example, user: root, port: 2222}, push: false}
  c: {command: [ip, netns, exec, lab-c], provider: soft, link: udp, address: "2001:db8::1"}
  n: {ssh: "node[08-10].example", devices: [mlx5_0, mlx5_1], address: "192.0.2.[8-10]", rdmarun: /opt/rdmarun}
  "d[1-2]": {command: [docker, exec, -i, "box[1-2]"]}
  here: {silence: 90s}
`)
	options := []string{"StrictHostKeyChecking=no"}
	site := map[string]string{"site": "x"}
	want := []Host{
		{
			Name: "a", SSH: &SSH{Host: "nodea.example", User: "lab", Options: options}, Push: true, Provider: "verbs",
			Devices: []string{"mlx5_0"},
			Address: netip.MustParseAddr("192.0.2.1"), Labels: map[string]string{"site": "x", "rack": "r1"},
		},
		{
			Name: "b", SSH: &SSH{Host: "nodeb.example", User: "root", Port: 2222, Options: options}, Provider: "verbs",
			Labels: site,
		},
		{
			Name: "c", Command: []string{"ip", "netns", "exec", "lab-c"}, Provider: "soft", Link: "udp",
			Named: "lab.yaml:7:16", Address: netip.MustParseAddr("2001:db8::1"), Labels: site,
		},
	}
	for i, number := range []string{"08", "09", "10"} {
		want = append(want, Host{
			Name: "n" + number, SSH: &SSH{Host: "node" + number + ".example", User: "lab", Options: options},
			Program: "/opt/rdmarun", Named: "lab.yaml:8:98", Provider: "verbs",
			Devices: []string{"mlx5_0", "mlx5_1"}, Address: netip.MustParseAddr(fmt.Sprint("192.0.2.", 8+i)),
			Labels: site,
		})
	}
	for _, number := range []string{"1", "2"} {
		want = append(want, Host{
			Name: "d" + number, Command: []string{"docker", "exec", "-i", "box" + number}, Provider: "verbs",
			Labels: site, Named: "lab.yaml:9:23",
		})
	}
	want = append(want, Host{Name: "here", Provider: "verbs", Labels: site, Silence: 90 * time.Second})
	if len(lab.Hosts) != len(want) {
		t.Fatalf("%d hosts: %+v", len(lab.Hosts), lab.Hosts)
	}
	for i, host := range lab.Hosts {
		if !reflect.DeepEqual(host, want[i]) {
			t.Errorf("host %d\n got %+v %+v\nwant %+v %+v", i, host, host.SSH, want[i], want[i].SSH)
		}
	}
	if groups := map[string][]string{"n": {"n08", "n09", "n10"}, "d": {"d1", "d2"}}; !reflect.DeepEqual(
		lab.Groups, groups,
	) {
		t.Errorf("%v", lab.Groups)
	}
	if !lab.Host("here").Local() || lab.Host("a").Local() || lab.Host("c").Local() {
		t.Error("which host is local?")
	}
}

func TestWrongLabs(t *testing.T) {
	for text, want := range map[string]string{
		"hosts: {a: }\nplaces: {}":         `3:1: error[E0101]: unknown key "places"`,
		"place: {}":                        `needs the key "hosts"`,
		"hsots: {a: }\nplace: {server: a}": `1: lab.yaml:2:1: error[E0101]: unknown key "hsots"`,
		"hosts: {'n[3-1]': }\nplace: {server: n3}": "1: lab.yaml:2:9: error[E0104]: [3-1] is " +
			"not a range",
		"hosts: {a: {ssh: {hots: x}}}":                            `1: lab.yaml:2:19: error[E0101]: unknown key "hots"`,
		"hosts: [a]":                                              "hosts must be a mapping",
		"hosts: {}":                                               "there are no hosts here",
		"hosts: {a: {sssh: x}}":                                   `unknown key "sssh"`,
		"hosts: {a: {ssh: -oProxyCommand=x}}":                     `"-oProxyCommand=x" is not a name of a host`,
		"hosts: {a: {ssh: 'x;id'}}":                               `"x;id" is not a name of a host`,
		`hosts: {a: {ssh: "x\ny"}}`:                               "which can be printed in a line",
		"hosts: {a: {ssh: -oProxyCommand=x@y}}":                   `"-oProxyCommand=x" is not a name of a user`,
		"hosts: {a: {ssh: {host: x, user: '$(id)'}}}":             `"$(id)" is not a name of a user`,
		"defaults: {ssh: {user: -x}}\nhosts: {a: }":               `"-x" is not a name of a user`,
		"hosts: {a: {rdmarun: -x}}":                               `"-x" is not a path of a program`,
		`hosts: {a: {rdmarun: "/x\x1b[2J"}}`:                      "which can be printed in a line",
		`hosts: {a: {device: "x\n::error::"}}`:                    "which can be printed in a line",
		`hosts: {a: {labels: {"r\t": x}}}`:                        "which can be printed in a line",
		"hosts: {a: }\nplace: {\"s\\x07\": a}":                    "which can be printed in a line",
		"hosts: {a: {device: " + strings.Repeat("x", 5000) + "}}": "at most 4096 bytes",
		"hosts: {a: {join: 'x.>'}}":                               `"x.>" cannot be the name of an agent`,
		"hosts: {a: {join: ../x}}":                                `"../x" cannot be the name of an agent`,
		"hosts: {a: {join: }}":                                    "join is the name of one host's agent",
		"hosts: {a: {join: x, push: true}}":                       `nothing needs "push"`,
		"hosts: {a: {join: x, command: x}}":                       "a host has command or join, not both",
		"hosts: {a: {join: x}, b: {join: x}}":                     `hosts a and b are one agent, "x"`,
		"defaults: {join: x}\nhosts: {a: }":                       "join is the name of one host's agent",
		"nats: lab\nhosts: {a: }":                                 `2:7: error[E0104]: "lab" is not a URL of a NATS server`,
		"hosts: {a: }\nplace: {server: }":                         "3:9: error[E0102]: role server has no host",
		"hosts: {a: }\nplace: {server: {hosts: [a, z]}}":          `3:29: error[E0109]: there is no host "z"`,
		"nats: [x]\nhosts: {a: }":                                 "nats must be a value",
		"hosts: {a: {ssh: root@}}":                                `"" is not a name of a host`,
		"hosts: {a: {ssh: {user: x}}}":                            `ssh needs the key "host"`,
		"hosts: {a: {ssh: {host: x, port: 0}}}":                   "port is a number from 1 to 65535",
		"hosts: {a: {ssh: x, command: [y]}}":                      "ssh or command, not both",
		"hosts: {a: {command: {}}}":                               "command must be a word or a list of words",
		"hosts: {a: {provider: rdma}}":                            `there is no provider "rdma"`,
		"hosts: {a: {link: wire}}":                                `there is no link "wire"`,
		"hosts: {a: {address: here}}":                             `"here" is not an IP address`,
		"hosts: {a: {silence: 0s}}":                               "silence is a time from 1s to 1h",
		"hosts: {a: {silence: 2h}}":                               "silence is a time from 1s to 1h",
		"hosts: {a: {silence: long}}":                             "error[E0104]",
		"hosts: {a: {push: maybe}}":                               "push is true or false",
		"hosts: {a: {local: false}}":                              "a host that is not local has ssh or command",
		"hosts: {a: {labels: x}}":                                 "labels must be a mapping",
		`hosts: {"a b": }`:                                        `"a b" cannot be the name of a host`,
		`hosts: {"../a": }`:                                       "cannot be the name of a host",
		`hosts: {a1: , "a[1-2]": }`:                               `there are two hosts "a1"`,
		`hosts: {"a[2-1]": }`:                                     "is not a range",
		`hosts: {"a[1-99999]": }`:                                 "is not a range of 1 to 4096 hosts",
		`hosts: {"a[1-2]": {ssh: "b[1-3]"}}`:                      "differ in length",
		`hosts: {"a[1-2]": {address: "192.0.2.[255-256]"}}`:       "is not an IP address",
		`hosts: {"a[1-4000]": , "b[1-4000]": }`:                   "at most 4096 hosts",
		"hosts: {a: }\nplace: {server: b}":                        `there is no host "b"`,
		"hosts: {\"n[01-12]\": }\nplace: {server: \"n[01-13]\"}":  `3:17: error[E0109]: there is no host "n13"`,
		"hosts: {\"n[1-2]\": }\nplace: {server: {hosts: [\"n[3-2]\"]}}": "[3-2] is not a range of 1 to 4096 hosts, " +
			"the smaller number first: write [2-3]",
		"hosts: {\"n[1-2]\": }\nplace: {x: [n1, \"n[1-4096]\"]}":       "at most 4096 hosts",
		"hosts: {a: }\nplace: {server: {label: {rack: r1}}}":           "no host has those labels",
		"hosts: {a: }\nplace: {server: {hosts: z, label: {rack: r1}}}": `3:25: error[E0109]: there is no host "z"`,
		"hosts: {a: }\nplace: {server: {hosts: a, per_host: 0}}":       "per_host is a number from 1",
		"hosts: {a: }\nplace: {server: {on: a}}":                       `unknown key "on"`,
		"hosts: {a: }\nplace: [a]":                                     "place must be a mapping",
		"defaults: {ssh: x}\nhosts: {a: }":                             "ssh must be a mapping",
		"hosts: {a: }\nplace: {server: {hosts: [a, {}]}}":              "an item of hosts must be a value",
		"hosts: {a: {ssh: {host: x, options: {}}}}":                    "options must be a word or a list",
		"hosts: {a: {device: []}}":                                     "device must be a word or a list",
		"hosts: {a: [b]}":                                              "a host must be a mapping",
		"hosts: {a: }\nhosts: {b: }":                                   "is in this mapping already",
		"defaults: {provider: soft, rack: r1}\nhosts: {a: {ssh: b c}}": `unknown key "rack"`,
	} {
		_, wrong := parse("lab.yaml", []byte("rdmarun: lab/v1\n"+text))
		var said []string
		for _, each := range wrong.Sorted() {
			said = append(said, each.Error())
		}
		if !strings.Contains(fmt.Sprintf("%d: %s", len(said), strings.Join(said, "\n")), want) {
			t.Errorf("%s\n got %q\nwant %q", text, said, want)
		}
	}
	for _, text := range []string{"hosts: {a: }", "rdmarun: v1\nhosts: {a: }", "[]", "", "7"} {
		if _, wrong := parse("lab.yaml", []byte(text)); wrong.Len() == 0 {
			t.Errorf("%q is a lab", text)
		}
	}
	// What is another file has one error.
	_, wrong := parse("lab.yaml", []byte("rdmarun: v1\nname: x\nroles: {server: }\nsteps: []\n"))
	if all := wrong.Sorted(); len(all) != 1 ||
		!strings.Contains(all[0].Hint, "this is a scenario; a lab file begins with rdmarun: lab/v1") {
		t.Errorf("%v", all)
	}
}

func TestPlace(t *testing.T) {
	lab := parsed(t, `
hosts: {a: {labels: {rack: r1}}, b: {labels: {rack: r2}}, "n[1-3]": {labels: {rack: r2}}}
place:
  server: a
  client: n
  "client[2]": b
  crowd: {hosts: [n], per_host: 2}
  racked: {label: {rack: r2}}
  ranged: {hosts: ["n[2-3]", a], per_host: 2}
  "ranged[3]": "n[1-1]"
  either: [b, a]
`)
	for _, test := range []struct {
		role Role
		want string
	}{
		{Role{Name: "server"}, "a"},
		{Role{Name: "client[0]", Group: "client", Index: 0}, "n1"},
		{Role{Name: "client[1]", Group: "client", Index: 1}, "n2"},
		{Role{Name: "client[2]", Group: "client", Index: 2}, "b"},
		{Role{Name: "client[3]", Group: "client", Index: 3}, "n1"},
		{Role{Name: "crowd[1]", Group: "crowd", Index: 1}, "n1"},
		{Role{Name: "crowd[5]", Group: "crowd", Index: 5}, "n3"},
		{
			Role{Name: "crowd[6]", Group: "crowd", Index: 6},
			"error: role crowd has more instances than 3 hosts with 2 each",
		},
		{Role{Name: "racked"}, "b"},
		{Role{Name: "ranged[1]", Group: "ranged", Index: 1}, "n2"},
		{Role{Name: "ranged[2]", Group: "ranged", Index: 2}, "n3"},
		{Role{Name: "ranged[3]", Group: "ranged", Index: 3}, "n1"},
		{Role{Name: "ranged[4]", Group: "ranged", Index: 4}, "a"},
		{Role{Name: "either"}, "b"},
		{Role{Name: "other"}, "error: role other has no host"},
	} {
		got, err := lab.HostOf(test.role)
		if err != nil {
			got = "error: " + err.Error()
		}
		if !strings.HasPrefix(got, test.want) {
			t.Errorf("%s is placed on %s, not on %s", test.role.Name, got, test.want)
		}
	}
	for role, want := range map[string]int{
		"server": 1, "client": 3, "crowd": 6, "racked": 4, "ranged": 6, "either": 2, "other": 5,
	} {
		if got := lab.Count(role); got != want {
			t.Errorf("%d parties of %s, not %d", got, role, want)
		}
	}
	if err := lab.Override("*=a,n"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range 5 {
		host, err := lab.HostOf(Role{Name: "other", Number: i})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, host)
	}
	if !slices.Equal(got, []string{"a", "n1", "n2", "n3", "a"}) {
		t.Error(got)
	}
	for text, want := range map[string]string{
		"server": "ROLE=HOST", "server=": "ROLE=HOST", "server=c": `there is no host "c"`,
	} {
		if err := lab.Override(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestGreeting(t *testing.T) {
	who := bus.NewCredentials()
	if got, err := ParseGreeting(Greeting(who) + "\n"); err != nil || got != who {
		t.Errorf("%+v %v", got, err)
	}
	answer := NewAnswer("v1 (devel)")
	if got, ok := ParseAnswer(answer.String() + "\r\n"); !ok || got != answer {
		t.Errorf("%+v", got)
	}
	for _, line := range []string{
		"", "Welcome to node a", "rdmarun-agent", "rdmarun-agent x y z", Greeting(who) + " more",
	} {
		if _, ok := ParseAnswer(line); ok {
			t.Errorf("%q is an answer", line)
		}
	}
	if _, err := ParseGreeting("INFO {}"); err == nil {
		t.Error("anything greets")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("hosts: {a: {ssh: x}}\nplace: {server: a}")
	f.Add(`hosts: {"a[1-3]": {command: ["b[4-6]"], address: "192.0.2.[1-3]"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		lab, wrong := parse("lab.yaml", []byte("rdmarun: lab/v1\n"+text))
		if wrong.Len() > 0 || lab == nil {
			return
		}
		for _, host := range lab.Hosts {
			if lab.Host(host.Name) == nil ||
				host.SSH != nil &&
					(strings.HasPrefix(host.SSH.Host, "-") || strings.HasPrefix(host.SSH.User, "-") ||
						strings.ContainsAny(host.SSH.Host+host.SSH.User, "; '\"$`\n")) ||
				strings.ContainsAny(host.Join, "*>/ \n") {
				t.Errorf("%+v", host)
			}
		}
	})
}

// TestJoined: hosts have the labels of their joined agents, and roles are placed by them.
func TestJoined(t *testing.T) {
	lab := parsed(t, `
nats: nats://lab.example
defaults: {command: [x]}
hosts: {"n[1-3]": {join: "node[1-3].example", labels: {site: x}}, here: {local: true}}
place: {server: {label: {rack: r1}}, "*": here}
`)
	if lab.NATS != "nats://lab.example" || !lab.Joins() || lab.Hosts[2].Join != "node3.example" ||
		lab.Hosts[2].SSH != nil || lab.Hosts[2].Command != nil || lab.Hosts[2].Local() {
		t.Fatalf("%+v", lab)
	}
	if _, err := lab.HostOf(Role{Name: "server"}); err == nil ||
		!strings.Contains(err.Error(), "no host has those labels") {
		t.Error(err)
	}
	for agent, rack := range map[string]string{
		"node1.example": "r2", "node2.example": "r1", "node3.example": "r1", "stranger": "r1",
	} {
		lab.Joined(agent, map[string]string{"rack": rack, "site": "y"})
	}
	if host, err := lab.HostOf(Role{Name: "server"}); err != nil || host != "n2" ||
		lab.Host(host).Labels["site"] != "x" {
		t.Error(host, err)
	}
	if lab.Count("server") != 2 {
		t.Error(lab.Count("server"))
	}
}

func TestRolesIn(t *testing.T) {
	if got := strings.Join(
		RolesIn([]string{"server=a,client=b,c", "x=rack=r1,client=d", "y"}), " ",
	); got != "server client x" {
		t.Error(got)
	}
}

func TestNamesIn(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "server=a": "a", "x=n[08-10],a,y=n[2-1]": "n08 n09 n10 a", "server=a,client=b,c;x=a": "a b c",
		"server=a,client=rack=r1": "", "server=a;client=rack=r1,b": "",
	} {
		if got := strings.Join(NamesIn(strings.Split(text, ";")), " "); got != want {
			t.Errorf("%s: %s, not %s", text, got, want)
		}
	}
}

func TestOverrides(t *testing.T) {
	for text, want := range map[string]string{
		"server=a":             "server on a",
		"server=a,client=b":    "client on b; server on a",
		"client=a,b":           "client on a, b",
		"client=b,a,server=b":  "client on b, a; server on b",
		"client=rack=r1":       "client on a, b",
		"x=rack=r2,client=a":   "client on a; x on n1, n2",
		"client=rack=r3":       "no host has the label rack=r3; there are rack=r1, rack=r2",
		"client=c":             `there is no host "c"`,
		"client":               "not of the form ROLE=HOST",
		"client=":              "not of the form ROLE=HOST",
		"=a":                   "not of the form ROLE=HOST",
		"client=a,":            "not of the form ROLE=HOST",
		"client=a,client=b":    "role client has two places",
		"client=n[1-2],a":      "client on n1, n2, a",
		"client=n[1-3]":        `there is no host "n3"`,
		"client=n[2-1]":        "[2-1] is not a range of 1 to 4096 hosts",
		"client=n,server=n1,a": "client on n1, n2; server on n1, a",
	} {
		lab := parsed(t, `hosts: {a: {labels: {rack: r1}}, b: {labels: {rack: r1}}, "n[1-2]": {labels: {rack: r2}}}`)
		got := ""
		if err := lab.Override(text); err != nil {
			got = err.Error()
			if len(lab.Place) > 0 {
				t.Errorf("%s: it is placed nevertheless", text)
			}
		} else {
			var all []string
			for role, placement := range lab.Place {
				all = append(all, role+" on "+strings.Join(lab.candidates(placement), ", "))
			}
			slices.Sort(all)
			got = strings.Join(all, "; ")
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, not %s", text, got, want)
		}
	}
}

// FuzzAnswer makes the two ends of a launcher's pipe send anything. What is accepted is what was sent. What is shown
// of it is short and not a command to a terminal.
func FuzzAnswer(f *testing.F) {
	f.Add(NewAnswer("v1 of today").String())
	f.Add(Greeting(bus.NewCredentials()))
	for _, seed := range []string{
		"rdmarun-agent 1 v1 linux/amd64", "rdmarun-agent 1x v1 linux/amd64 7.9", "rdmarun-agent 1 v1 linux/amd64 0.9",
		"rdmarun-agent -1 \x1b[2J \u202e 7.99999999999999999999", "rdmarun-agent",
		"rdmarun-agent 99999999999999999999 v1 linux",
		`{"error":"\u001b[2J","hint":"` + strings.Repeat("\u202e", 2000) + `"}`,
		`{"version":"\u0007","device":"a\nb","mtu":-1,"findings":[{"id":"\u001b","title":"\u009b","status":"\u202e","detail":"\u0000","fix":"rm"}` + strings.Repeat(",{}", 500) + `]}`, "null", "[]", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, said string) {
		if answer, ok := ParseAnswer(said); ok {
			if again, ok := ParseAnswer(answer.String()); !ok || again != answer {
				t.Errorf("%q is %+v, and that %+v", said, answer, again)
			}
		}
		if who, err := ParseGreeting(said); err == nil {
			if again, err := ParseGreeting(Greeting(who)); err != nil || again != who {
				t.Errorf("%q is %+v, and that %+v", said, who, again)
			}
		}
		clean := func(texts ...string) {
			for _, text := range texts {
				if len(text) > 4*MaxText || printable.Line(text) != text {
					t.Errorf("%d bytes: %.200q", len(text), text)
				}
			}
		}
		if done, err := ParseDone([]byte(said)); err != nil {
			clean(err.Error())
		} else {
			clean(done.Error, done.Hint)
		}
		found, err := ParseExamined([]byte(said))
		if err != nil {
			clean(err.Error())
		}
		clean(found.Error, found.Version, found.Device, found.Address, found.GIDType)
		for _, each := range found.Findings {
			clean(each.ID, each.Title, string(each.Status), each.Detail, each.Fix)
		}
		if len(found.Findings) > 256 || found.MTU < 0 {
			t.Errorf("%d findings, MTU %d", len(found.Findings), found.MTU)
		}
	})
}
