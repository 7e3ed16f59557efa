package wasm

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero"
)

// What metering costs: the smallest of loops, one with a load, and recursion, as they are and metered.
func BenchmarkMetering(b *testing.B) {
	plain := read(b, "testdata/loops.wasm")
	metered, err := Meter(plain)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		function string
		argument uint64
		steps    float64
	}{{"lcg", 1e6, 1e6}, {"load", 1e6, 1e6}, {"fib", 25, 242785}} {
		b.Run(c.function+"/plain", func(b *testing.B) { benchmarkFunction(b, plain, c.function, c.argument, c.steps) })
		b.Run(c.function+"/metered", func(b *testing.B) { benchmarkFunction(b, metered, c.function, c.argument, c.steps) })
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
		if _, err := Meter(module); err != nil {
			b.Fatal(err)
		}
	}
}
