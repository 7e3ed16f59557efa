package wasm

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

func read(t testing.TB, path string) []byte {
	t.Helper()
	module, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// meter decodes and meters a module.
func meter(file []byte) (Rewritten, error) {
	m, err := Decode(file)
	if err != nil {
		return Rewritten{}, err
	}
	return m.Meter(context.Background())
}

// decodeUnreserved decodes a module that was rewritten.  It has exports with names that are kept for the host.
func decodeUnreserved(file []byte) (*Module, error) {
	return Decode(bytes.ReplaceAll(file, []byte(reserved), []byte("RDMARUN:")))
}

func inspectRewritten(file []byte) (Facts, error) {
	m, err := decodeUnreserved(file)
	if err != nil {
		return Facts{}, err
	}
	for i := range m.Facts.Exports {
		m.Facts.Exports[i].Name = strings.ReplaceAll(m.Facts.Exports[i].Name, "RDMARUN:", reserved)
	}
	return m.Facts, m.Validate()
}

// coreFeatures are those that guests may use.
const coreFeatures = api.CoreFeaturesV2 | experimental.CoreFeaturesThreads | experimental.CoreFeaturesTailCall |
	experimental.CoreFeaturesExtendedConst

// valid has wazero validate a module.
func valid(t testing.TB, module []byte) error {
	t.Helper()
	ctx := context.Background()
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCoreFeatures(coreFeatures))
	defer runtime.Close(ctx)
	_, err := runtime.CompileModule(ctx, module)
	return err
}

func TestMeteredModulesAreValid(t *testing.T) {
	for _, path := range []string{"testdata/instructions.wasm", "../../../guests/hello/hello.wasm",
		"../testdata/spin_at_start.wasm", "../testdata/tail_calls.wasm",
		"../testdata/extended_const.wasm"} {
		metered, err := meter(read(t, path))
		if err == nil {
			err = valid(t, metered.Module)
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		facts, err := inspectRewritten(metered.Module)
		if err != nil ||
			!slices.ContainsFunc(facts.Exports, func(e Export) bool {
				return e.Name == StopGlobal && e.Kind == KindGlobal
			}) {
			t.Errorf("%s: exports are %v, %v", path, facts.Exports, err)
		}
	}
}

func TestMeteringKeepsImportsAndExports(t *testing.T) {
	module := read(t, "../../../guests/hello/hello.wasm")
	before, err := inspect(module)
	if err != nil {
		t.Fatal(err)
	}
	metered, err := meter(module)
	if err != nil {
		t.Fatal(err)
	}
	after, err := inspectRewritten(metered.Module)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(before.Imports, after.Imports) {
		t.Errorf("imports were %v, are %v", before.Imports, after.Imports)
	}
	if !slices.Equal(before.Exports, after.Exports[:len(before.Exports)]) {
		t.Errorf("exports were %v, are %v", before.Exports, after.Exports)
	}
}

func TestModulesThatCannotBeMetered(t *testing.T) {
	instructions := read(t, "testdata/instructions.wasm")
	unknown := bytes.Replace(instructions, []byte{0xfe, 0x03, 0x00}, []byte{0xfe, 0x7f, 0x00}, 1)
	for name, c := range map[string]struct {
		module []byte
		format bool // no WebAssembly at all, rather than something this package does not know
	}{
		"nothing":             {nil, true},
		"text":                {[]byte("#!/bin/sh"), true},
		"component":           {[]byte("\x00asm\x0d\x00\x01\x00"), true},
		"unknown instruction": {unknown, true},
		"reaches its meter":   {read(t, "../testdata/cheat.wasm"), true},
	} {
		if _, err := meter(c.module); err == nil || errors.Is(err, ErrFormat) != c.format {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is cut off anywhere is an error, or a module of fewer sections.
func TestTruncatedModules(t *testing.T) {
	module := read(t, "testdata/instructions.wasm")
	for length := range module {
		inspect(module[:length])
		meter(module[:length])
	}
}

func TestNumbers(t *testing.T) {
	for name, c := range map[string]struct {
		bytes []byte
		want  uint64
		err   bool
	}{
		"zero":      {[]byte{0}, 0, false},
		"two bytes": {[]byte{0x80, 0x01}, 128, false},
		"padded":    {[]byte{0x83, 0x80, 0x00}, 3, false},
		"largest":   {[]byte{0xff, 0xff, 0xff, 0xff, 0x0f}, 1<<32 - 1, false},
		"cut off":   {[]byte{0x80}, 0, true},
		"too long":  {bytes.Repeat([]byte{0x80}, 11), 0, true},
		"33 bits":   {[]byte{0xff, 0xff, 0xff, 0xff, 0x1f}, 0, true},
	} {
		r := &reader{data: c.bytes}
		if got := r.index(); uint64(got) != c.want || (r.err != nil) != c.err {
			t.Errorf("%s: %d, %v", name, got, r.err)
		}
	}
	for _, value := range []uint64{0, 1, 127, 128, 1 << 20, 1<<32 - 1, 1<<64 - 1} {
		r := &reader{data: appendUnsigned(nil, value)}
		if got := r.unsigned(); got != value || r.more() {
			t.Errorf("%d comes back as %d", value, got)
		}
	}
}

// What metering costs: the smallest of loops, one with a load, and recursion, as they are and metered.
func BenchmarkMetering(b *testing.B) {
	plain := read(b, "testdata/loops.wasm")
	metered, err := meter(plain)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		function string
		argument uint64
		steps    float64
	}{{"lcg", 1e6, 1e6}, {"load", 1e6, 1e6}, {"fib", 25, 242785}} {
		b.Run(c.function+"/plain", func(b *testing.B) { benchmarkFunction(b, plain, c.function, c.argument, c.steps) })
		b.Run(c.function+"/metered", func(b *testing.B) {
			benchmarkFunction(b, metered.Module, c.function, c.argument, c.steps)
		})
	}
}

func benchmarkFunction(b *testing.B, module []byte, function string, argument uint64, steps float64) {
	ctx := context.Background()
	runtime := wazero.NewRuntime(ctx)
	defer runtime.Close(ctx)
	instance, err := runtime.Instantiate(ctx, module)
	if err != nil {
		b.Fatal(err)
	}
	f := instance.ExportedFunction(function)
	for b.Loop() {
		if _, err := f.Call(ctx, argument); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/steps, "ns/step")
}

// The rewriting itself.
func BenchmarkMeter(b *testing.B) {
	module := read(b, "../../../guests/hello/hello.wasm")
	b.SetBytes(int64(len(module)))
	for b.Loop() {
		if _, err := meter(module); err != nil {
			b.Fatal(err)
		}
	}
}
