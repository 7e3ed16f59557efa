package exec

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"rdmarun/host/printable"
	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/peer"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/timeline"
	"rdmarun/host/scenario/verb"
)

// runWithPeer is a run of which the role server is in the process a, and client in b.
func runWithPeer() (r *caseRun, binds func(role, name string, index int) bool) {
	r = &caseRun{
		env: expression.Env{"roles": "theirs"}, given: make(map[string]any), lists: make(map[ownedName]*sharedList),
		owned: make(map[string]map[string]any),
		roleObjects: map[string]map[string]any{
			"server": {
				"address": "192.0.2.1", "provider": map[string]any{"soft": true}, "data": map[string]any{"rkey": 1},
			},
			"client": {"address": "192.0.2.2", "data": map[string]any{"rkey": 2}},
		},
		testbed: &testbed.Testbed{}, roster: &roster{where: map[string]string{"server": "a", "client": "b"}},
	}
	return r, func(role, name string, index int) bool {
		return role == "server" && (name == "ep" && index == -1 || name == "eps" && index == 3)
	}
}

var record7 = `{"record":{"n":{"int":"7"}}}`

// TestReceived: an outcome of another process counts if the step can have it, and is an error otherwise.
func TestReceived(t *testing.T) {
	for name, test := range map[string]struct{ reported, want string }{
		"a result": {
			`{"bound":[{"role":"server","name":"ep","index":-1,"value":` + record7 + `}],"steps":1}`, "",
		},
		"one of several": {`{"bound":[{"role":"server","name":"eps","index":3,"value":` + record7 + `}]}`, ""},
		"a buffer's new keys": {
			`{"bound":[{"role":"server","name":"data","index":-1,"buffer":true,"value":` + record7 + `}]}`, "",
		},
		"a large number": {
			`{"bound":[{"role":"server","name":"eps","index":1048576,"value":` + record7 + `}]}`, "cannot have",
		},
		"a negative number": {
			`{"bound":[{"role":"server","name":"eps","index":-9223372036854775808,"value":` + record7 + `}]}`,
			"cannot have",
		},
		"another name": {
			`{"bound":[{"role":"server","name":"roles","index":-1,"value":` + record7 + `}]}`, "cannot have",
		},
		"a role elsewhere": {
			`{"bound":[{"role":"client","name":"ep","index":-1,"value":` + record7 + `}]}`, "cannot have",
		},
		"no role": {`{"bound":[{"name":"ep","index":-1,"value":` + record7 + `}]}`, "cannot have"},
		"no record": {
			`{"bound":[{"role":"server","name":"ep","index":-1,"value":{"int":"7"}}]}`, "cannot have",
		},
		"a buffer of another": {
			`{"bound":[{"role":"client","name":"data","buffer":true,"value":` + record7 + `}]}`, "cannot have",
		},
		"no buffer": {
			`{"bound":[{"role":"server","name":"address","buffer":true,"value":` + record7 + `}]}`, "cannot have",
		},
		"facts for a buffer": {
			`{"bound":[{"role":"server","name":"provider","buffer":true,"value":` + record7 + `}]}`, "cannot have",
		},
		"a buffer of no record": {
			`{"bound":[{"role":"server","name":"data","buffer":true,"value":"x"}]}`, "cannot have",
		},
		"a name for a terminal": {
			`{"bound":[{"role":"\u001b[2J","name":"\u202e","value":` + record7 + `}]}`, `"\u202e" of role "\x1b[2J"`,
		},
		"what is no value": {
			`{"bound":[{"role":"server","name":"ep","index":-1,"value":{"int":1e99}}]}`, "has no text",
		},
		"loops without an end":   {`{"loops":[` + strings.Repeat("{},", 2000) + `{}]}`, "sent 2001 loops"},
		"a failure":              {`{"failure":{"what":"wrong","step":-7,"line":-1}}`, "wrong"},
		"a failure of its host":  {`{"failure":{"kind":"error","what":"no device"}}`, "no device"},
		"a failure in no time":   {`{"failure":{"late":true,"what":"too late"}}`, "too late"},
		"ends that are none":     {`{"ignored":[{},{}]}`, ""},
		"fewer steps than none":  {`{"steps":-9223372036854775808}`, ""},
		"more steps than counts": {`{"steps":9223372036854775807}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, binds := runWithPeer()
			var reported peer.Outcome
			if err := json.Unmarshal([]byte(test.reported), &reported); err != nil {
				t.Fatal(err)
			}
			err := r.take(reported, "a", binds)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, not %q", err, test.want)
			}
		})
	}
}

// FuzzReceived takes any outcome of a step: names, lists and facts of roles stay within the file's.
func FuzzReceived(f *testing.F) {
	f.Add([]byte(
		`{"failure":{"what":"` + strings.Repeat("x", 5000) + `"},"loops":[{"name":"` + strings.Repeat("y", 5000) +
			`"}]}`,
	))
	f.Add([]byte(`{"bound":[{"role":"server","name":"eps","index":3,"value":` + record7 + `}],"loops":[{}],"steps":3}`))
	f.Add([]byte(
		`{"bound":[{"role":"server","name":"eps","index":99999999,"value":` + record7 + `}],"failure":{"step":1e9}}`,
	))
	f.Add([]byte(
		`{"bound":[{"role":"server","name":"data","buffer":true,"value":null},null],"ignored":[{"Local":"192.0.2.1:7","Peer":"::1"}]}`,
	))
	f.Fuzz(func(t *testing.T, data []byte) {
		var reported peer.Outcome
		if json.Unmarshal(data, &reported) != nil {
			return
		}
		r, binds := runWithPeer()
		maxError := 5 * len(verb.Brief(strings.Repeat("x", 5000)))
		if err := r.take(reported, "a", binds); err != nil && len(err.Error()) > maxError {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
		for _, loop := range r.loops.Received {
			if len(loop.Name) > len(verb.Brief(loop.Name)) {
				t.Errorf("a name of %d bytes", len(loop.Name))
			}
		}
		known := "ep eps roles"
		for name := range r.env {
			if !strings.Contains(known, name) || name == "roles" && r.env[name] != "theirs" {
				t.Errorf("%q has got a value", name)
			}
		}
		for name, list := range r.lists {
			if len(list.items) > 4 {
				t.Errorf("%v has %d items", name, len(list.items))
			}
		}
		if text := fmt.Sprint(
			r.roleObjects["client"], r.roleObjects["server"]["provider"],
		); text != "map[address:192.0.2.2 data:map[rkey:2]] map[soft:true]" {
			t.Error(text)
		}
	})
}

// TestClaimed: a process plays the roles that the placement gives it, whatever roles its message has.
func TestClaimed(t *testing.T) {
	for _, test := range []struct {
		role roleFacts
		want string
	}{
		{roleFacts{Name: "client"}, ""},
		{roleFacts{Name: "node[1]", Group: "node", Index: 1}, ""},
		{roleFacts{Name: "node[1]", Group: "server", Index: -7}, ""},
		{roleFacts{Name: "client", Host: "a", Guest: true, Place: record.RolePlace{Role: "server"}}, ""},
		{roleFacts{Name: "server"}, "the process of b says that it plays role server, which is that of a"},
		{roleFacts{Name: "node[0]", Group: "node"}, "role node[0], which is that of a"},
		{roleFacts{Name: "node[7]", Group: "node", Index: 7}, "does not have"},
		{roleFacts{Name: "node", Group: "node"}, "does not have"},
		{roleFacts{Name: "roles"}, "does not have"},
		{roleFacts{Name: ""}, "does not have"},
		{roleFacts{Name: "\x1b[2J"}, `a role "\x1b[2J" that`},
	} {
		r, o := claiming()
		if err := o.claimed(r, &test.role, "b"); (err == nil) != (test.want == "") ||
			err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v", test.role, err)
		}
		facts := &test.role
		if known := facts.Name == "client" ||
			facts.Name == "node[1]" && facts.Group == "node" && facts.Index == 1; test.want == "" &&
			(!known || facts.Host != "b" || facts.Guest || facts.Place.Role != facts.Name) {
			t.Errorf("%+v", facts)
		}
		r.roster.where[test.role.Name] = "b"
		if err := o.claimed(r, &test.role, "b"); err == nil {
			t.Errorf("%+v: twice", test.role)
		}
	}
}

// claiming is the run of a controller in which b claims roles.
func claiming() (*caseRun, *remote) {
	r, _ := runWithPeer()
	r.config.IsController, r.roster.where = true, make(map[string]string)
	r.testCase = &compile.Case{Elsewhere: []testbed.RoleConfig{
		{Name: "server"}, {Name: "client"}, {Name: "node[0]", Group: "node"},
		{Name: "node[1]", Group: "node", Index: 1},
	}}
	return r, &remote{player: func(role string) string {
		return map[string]string{"server": "a", "client": "b", "node[0]": "a", "node[1]": "b"}[role]
	}}
}

// TestDecider: the process with the first role of the file decides, and each role needs a process that claims it.
func TestDecider(t *testing.T) {
	r, o := claiming()
	r.roster.where = map[string]string{"server": "a", "client": "b", "node[0]": "a"}
	if err := o.allClaimed(r); err == nil ||
		!strings.Contains(err.Error(), "the process of b has not sent the place of its role node[1]") {
		t.Error(err)
	}
	r.roster.where["node[1]"] = "b"
	if err := o.allClaimed(r); err != nil || r.roster.decider != "a" {
		t.Errorf("%q decides: %v", r.roster.decider, err)
	}
	r, o = claiming()
	r.roster.where = map[string]string{"client": "b", "node[0]": "a", "node[1]": "b"}
	r.testCase.Roles, r.testCase.Elsewhere = []testbed.RoleConfig{{Name: "server"}}, r.testCase.Elsewhere[1:]
	if err := o.allClaimed(r); err != nil || r.roster.decider != "" {
		t.Errorf("%q decides: %v", r.roster.decider, err)
	}
	r.testCase.Roles[0].Position = 2
	if err := o.allClaimed(r); err != nil || r.roster.decider != "b" {
		t.Errorf("%q decides: %v", r.roster.decider, err)
	}
}

// FuzzEnding takes any messages of a process from its beginning to its end, but for the outcomes of steps.
func FuzzEnding(f *testing.F) {
	for _, seed := range []string{
		`{"status":"passed","traffic":[{"operation":"SEND","count":-9223372036854775808,"bytes":9223372036854775807},{"operation":"SEND","count":-1,"bytes":1}]}`,
		`{"status":"\u001b","failures":[{"kind":"bug","what":"x","line":-1,"step":-1,"path":["a"],"excerpt":["b"],"rerun":"rm"}],"began":"0001-01-01T00:00:00Z","timeline":[{"at_ns":9223372036854775807,"role":"server"},{"role":"nobody"}]}`,
		`{"case":"x","status":"passed","roles":[{"name":"server"},{"name":"client","index":-1,"object":{"record":{}}},{"name":"node[3]","group":"node","index":3,"first":true}],"baseline":-9223372036854775808}`,
		`{"status":"error","reason":"` + strings.Repeat("x", 5000) + `","failures":[{"what":"` +
			strings.Repeat("y", 5000) + `"}]}`,
		`7`, `-1`, `9223372036854775807`, `[{"type":"latency"},null]`, `[{"threshold":-1,"limit":9}]`, `null`, `{}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, _ := runWithPeer()
		r.scenario = &compile.Scenario{File: "case.yaml"}
		claims, o := claiming()
		r.testCase, r.begin = claims.testCase, time.Unix(1e9, 0)
		o.Group = peer.NewGroup(nil, nil)
		r.result.Failures = make([]record.Failure, 1)
		o.Note("a", data)
		err := o.EndedBy("a")
		there, reported := o.EndOf("a")
		if err == nil || !reported {
			t.Errorf("%v", err)
		}
		printable.Each(&there, func(text string) string {
			if len(text) > len(verb.Brief(text)) {
				t.Errorf("a text of %d bytes", len(text))
			}
			return text
		})
		r.addMoments("a", there, math.MinInt64)
		r.result.AddTraffic(there.Traffic[:min(len(there.Traffic), maxOperations)])
		if moments := r.result.Failures[0].Timeline; slices.ContainsFunc(moments, func(m record.Moment) bool {
			return m.Role != "server"
		}) || len(moments) > timeline.MaxOfAll || len(r.result.Traffic) > maxOperations {
			t.Errorf("%d moments, %d operations", len(moments), len(r.result.Traffic))
		}
		if r.failWith(&there, "a"); len(r.result.Failures) > maxFailures+1 {
			t.Errorf("%d failures", len(r.result.Failures))
		}
		for i := range r.result.Failures {
			if f := &r.result.Failures[i]; f.Host != "" ||
				f.Role != "" && f.Role != "server" && f.Role != "client" && !strings.HasPrefix(f.Role, "node[") {
				t.Errorf("%+v", f)
			}
		}
		for _, failure := range there.Failures {
			if f := peer.FailureOf(failure.Failure); f.File+f.Rerun != "" || f.Path != nil || f.Excerpt != nil {
				t.Errorf("%+v", f)
			}
		}
		var begin beginning
		if json.Unmarshal(data, &begin) == nil {
			for _, role := range begin.Roles {
				if o.claimed(claims, &role, "b") == nil &&
					(role.Name != "client" && role.Name != "node[1]" || role.Host != "b" ||
						role.Place.Role != role.Name) {
					t.Errorf("b plays %+v", role)
				}
			}
		}
	})
}
