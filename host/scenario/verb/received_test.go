package verb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"rdmarun/host/record"
	"rdmarun/host/scenario/mesh"
	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// scriptedPeers has two processes: a, with the first half of the nodes, sends anything, and b what is true.
type scriptedPeers map[string][]byte

func (scriptedPeers) Process(role string) string {
	if role < "node[2]" {
		return "a"
	}
	return "b"
}

func (c scriptedPeers) Host(role string) string { return "of " + c.Process(role) }

func (scriptedPeers) PeerConn(string, string, string) PeerConn { return nil }
func (scriptedPeers) Broadcast(string, any) error              { return nil }

func (c scriptedPeers) Receive(_ context.Context, process, part string, into any) error {
	part, _, _ = strings.Cut(part, ".") // rounds alike
	return json.Unmarshal(c[process+" "+part], into)
}

// meshFrom runs a mesh in a process that plays no node, with these messages of the others.
func meshFrom(said scriptedPeers, both bool) (sum meshed, meshes []*record.Mesh, pairs [][]*record.Measure, err error) {
	knobs := measureKnobs{
		Kind: some(rdmacore.MeasureBandwidth), Operation: some(rdmacore.OpSend), Size: some(sizeList{64, 4096}),
		Iterations: some(7), Bidirectional: both,
	}
	nodes := instances{"node[0]", "node[1]", "node[2]", "node[3]"}
	call := &Call{
		MeshPeers: said, Progress: func(string, int, int) {},
		AtOnce: func(context.Context, int, func(context.Context, int) error) error { return nil },
		Meshed: func(m []*record.Mesh, p [][]*record.Measure) { meshes, pairs = m, p },
	}
	sum, err = meshPairs(context.Background(), call, &meshArguments{Nodes: nodes, Measure: knobs})
	return sum, meshes, pairs, err
}

// looksOf are looks at all pairs, of so many bits a second.
func looksOf(both bool, rates ...float64) []byte {
	var list []lookMessage
	for from := range 4 {
		for to := range 4 {
			one := lookMessage{Pair: mesh.Pair{From: from, To: to}}
			for _, rate := range rates {
				found := []*record.Measure{{
					What: record.What{Type: "bandwidth"}, Messages: 7, Took: 5, BitsPerSecond: rate,
				}}
				if both {
					found = append(found, found[0])
				}
				one.Sizes = append(one.Sizes, found)
			}
			list = append(list, one)
		}
	}
	raw, _ := json.Marshal(list)
	return raw
}

// TestMeshReceived: figures of a process count if they can be true; its pair is lost otherwise.
func TestMeshReceived(t *testing.T) {
	whole := looksOf(false, 1e9, 2e9)
	for name, test := range map[string]struct {
		said string
		lost int
		why  string
	}{
		"figures":            {string(whole), 0, ""},
		"of another pair":    {strings.ReplaceAll(string(whole), `"role":""`, `"role":"node[3]"`), 0, ""},
		"of a size too few":  {string(looksOf(false, 1e9)), 3, "1 sizes, and 2 are measured"},
		"of a size too many": {string(looksOf(false, 1e9, 1e9, 1e9)), 3, "3 sizes, and 2 are measured"},
		"of two directions":  {string(looksOf(true, 1e9, 1e9)), 3, "figures of each direction"},
		"more than there is": {string(looksOf(false, 1e9, 1e300)), 3, "no measurement has 1e+300 bits a second"},
		"less than nothing":  {string(looksOf(false, -1, 1)), 3, "no measurement has -1 bits a second"},
		"no figures":         {strings.ReplaceAll(string(whole), `[[{`, `[null,[{`), 3, "3 sizes"},
		"nothing":            {`[]`, 3, "did not send"},
		"a pair that is lost": {
			`[{"Pair":{"From":0,"To":1},"Lost":"` + strings.Repeat("x", 4000) + `"}]`, 3, "xxx...",
		},
		"a pair of no node": {`[{"Pair":{"From":-1,"To":99},"Sizes":[[{}],[{}]]}]`, 3, "did not send"},
		"fewer sizes of a cut": {
			`[{"Pair":{"From":1,"To":2},"Sizes":[[{"took_ns":1}]],"Cut":true},{"Pair":{"From":0,"To":3},"Sizes":[],"Cut":true}]`,
			0, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			sum, meshes, _, err := meshFrom(
				scriptedPeers{
					"a nodes": []byte(`{}`), "b nodes": []byte(`{}`), "a 0": []byte(test.said), "b 0": whole,
					"a 1": whole, "b 1": whole,
				},
				false,
			)
			if err != nil || sum.Lost != test.lost {
				t.Fatalf("%+v %v", sum, err)
			}
			for _, pair := range meshes[0].Pairs {
				if pair.Lost != "" &&
					(!strings.Contains(pair.Lost, test.why) && !strings.Contains(pair.Lost, "did not send") ||
						len(pair.Lost) > 2*maxWords) {
					t.Errorf("%+v", pair)
				}
			}
		})
	}
}

// TestMeshCutAgain: a second look that a threshold has cut before a size leaves the first one of that.
func TestMeshCutAgain(t *testing.T) {
	slow, best := looksOf(false, 1e9, 1e9), looksOf(false, 2e9, 2e9)
	cut := strings.ReplaceAll(string(looksOf(false, 1e9)), `]]}`, `]],"Cut":true}`)
	_, meshes, _, err := meshFrom(
		scriptedPeers{
			"a nodes": []byte(`{}`), "b nodes": []byte(`{}`), "a 0": slow, "b 0": best, "a 1": []byte(cut), "b 1": best,
		},
		false,
	)
	if err != nil || len(meshes) != 2 || meshes[1].Size != 4096 || meshes[1].Pairs[0].Again != nil ||
		meshes[0].Pairs[0].Again == nil {
		t.Errorf("%+v %v", meshes, err)
	}
}

// FuzzMeshReceived makes a process report anything about its nodes and its looks at their pairs. The result has the
// nodes and sizes of the file, and its values are numbers. Reports of other processes are unchanged.
func FuzzMeshReceived(f *testing.F) {
	whole, both := looksOf(false, 1e9, 2e9), looksOf(true, 3e9, 4e9)
	for _, each := range [][]byte{
		whole, both, looksOf(false, 1e300, 1e-300), looksOf(false, 1e18, 1e-6), looksOf(true, 1, 1, 1),
		[]byte(`[{"Pair":{"From":0,"To":1},"Lost":"\u001b[2J"}]`),
		[]byte(
			`[{"Pair":{"From":0,"To":1},"Sizes":[[{"size":-1,"messages":18446744073709551615,"took_ns":-1,"latency":[{"of":"total","p50_ns":-9223372036854775808}]}]],"Cut":true}]`,
		),
		[]byte(`[{"Pair":{"From":0,"To":1},"Sizes":[null,[null]]},{"Pair":{"From":-1,"To":7}}]`), []byte(`null`),
		[]byte(`{}`),
	} {
		f.Add(
			[]byte(
				`{"0":{"Name":"node[3]","Host":"b","Device":"\u001b","Labels":{"rack":"r1","\u202e":""}},"3":{"Host":"a"},"-1":{},"99":{"Host":"x"}}`,
			),
			each, whole,
		)
		f.Add([]byte(`{"0":{"Host":"a","Labels":{"rack":"r1"}},"1":{"Host":"a","Labels":{"rack":"r1"}}}`), whole, each)
	}
	const others = `{"2":{"Host":"b","Device":"soft0"},"3":{"Host":"b","Device":"soft0"}}`
	f.Fuzz(func(t *testing.T, nodes, first, again []byte) {
		for _, both := range []bool{false, true} {
			honest := looksOf(both, 1e9, 2e9)
			sum, meshes, pairs, err := meshFrom(
				scriptedPeers{
					"a nodes": nodes, "b nodes": []byte(others), "a 0": first, "b 0": honest, "a 1": again,
					"b 1": honest,
				},
				both,
			)
			if err != nil {
				_ = err.Error()
				continue
			}
			if sum.Worst < 0 || sum.Worst > 100 || len(meshes) > 2 || sum.Pairs+sum.Lost > 6 {
				t.Errorf("%+v, %d meshes", sum, len(meshes))
			}
			for _, each := range meshes {
				if _, err := json.Marshal(each); err != nil {
					t.Error(err)
				}
				if each.Type != "bandwidth" || each.Operation != "SEND" || len(each.Nodes) != 4 ||
					each.Nodes[3].Host != "of b" {
					t.Errorf("%+v", each)
				}
				for i := range each.Pairs {
					pair := &each.Pairs[i]
					if pair.From >= "node[2]" && pair.To >= "node[2]" && (pair.Lost != "" || pair.First.Messages != 7) {
						t.Errorf("what b sends is lost: %+v", pair)
					}
				}
			}
			for _, pair := range pairs {
				for _, each := range pair {
					if !strings.HasPrefix(each.Role+each.Peer, "node[") || each.Type != "bandwidth" ||
						!slices.Contains([]int64{64, 4096}, each.Size) || math.IsInf(each.BitsPerSecond, 0) {
						t.Errorf("%+v", each)
					}
				}
			}
		}
	})
}

// half is a PeerConn that receives lines of JSON, one at a time, and then fails.
type half struct{ lines [][]byte }

func (*half) Send(any) error { return nil }

func (h *half) Receive(_ context.Context, into any) error {
	if len(h.lines) == 0 {
		return errors.New("it has ended")
	}
	line := h.lines[0]
	h.lines = h.lines[1:]
	return json.Unmarshal(line, into)
}

// FuzzHalf has the other half of a measurement say whatever: the figures of both are numbers, and the failure of this
// one is named.
func FuzzHalf(f *testing.F) {
	for _, seed := range []string{
		"{\"iwarp\":true,\"watch\":true}\n{\"so_far\":{\"messages\":7,\"bytes\":448,\"took_ns\":5}}\n" +
			"{\"found\":{\"messages\":7,\"bytes\":448,\"took_ns\":5," +
			"\"intervals\":[{\"begin_ns\":0,\"end_ns\":5,\"messages\":7,\"bytes\":448}]}}",
		"{}\n{\"found\":{\"messages\":18446744073709551615,\"bytes\":18446744073709551615," +
			"\"verified\":18446744073709551615,\"took_ns\":1}}",
		"{}\n{\"found\":{\"took_ns\":-9223372036854775808,\"intervals\":[{\"begin_ns\":-1,\"end_ns\":-2}]}}",
		"{}\n{\"so_far\":{}}\n{}", "{\"failed\":{\"what\":\"\\u001b\",\"environment\":true}}",
		"{\"failed\":{}}", "{\"port\":65536}", "{\"memory\":{\"address\":-1}}", "null\nnull", "[]", "",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		args := &measureArguments{
			From: "client", To: "server",
			measureKnobs: measureKnobs{Kind: some(rdmacore.MeasureBandwidth), Bidirectional: true},
		}
		m := &measuring{args: args, from: &testbed.Role{}, call: &Call{Measured: func(list []*record.Measure) {
			if len(list) != 2 || list[1].Role != "server" || list[1].Peer != "client" {
				t.Errorf("%+v", list)
			}
			for _, each := range list {
				if err := each.Check(); err != nil {
					t.Error(err)
				}
			}
			if _, err := json.Marshal(list); err != nil {
				t.Error(err)
			}
		}}}
		m.other = meet(t.Context(), &half{bytes.Split(data, []byte("\n"))}, "server")
		err := m.talk()
		if ended := m.other.finish(err); (ended == nil) != (err == nil) || ended != nil && ended.Error() == "" {
			t.Errorf("%v, and %v", err, ended)
		}
		if m.sums.Messages < 0 || m.sums.Bytes < 0 || m.sums.Errors < 0 || m.sums.Verified < 0 {
			t.Errorf("%+v", m.sums)
		}
	})
}

// talk receives as a half that has nothing to measure.
func (m *measuring) talk() error {
	if _, err := m.other.receive(m.other.ctx); err != nil {
		return err
	}
	there, err := m.conclude(m.other.ctx, nil)
	if err == nil {
		m.report(nil, there)
	}
	return err
}
