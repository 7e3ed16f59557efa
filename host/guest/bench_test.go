package guest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"rdmarun/host/guest"
)

// batch is the number of calls that the bench_*.wat guests make between two visits to their barrier.
const batch = 100_000

// benchmarkBatches makes a guest post batches and reports the time of one call.
func benchmarkBatches(b *testing.B, mode guest.InterruptMode, name string) {
	r, p := newRuntime(b, mode), newProvider(b)
	m := compileWAT(b, r, name)
	ctx, cancel := context.WithCancel(context.Background())
	opened := make(chan struct{})
	close(opened)
	visits := 0
	result := r.Run(ctx, m, guest.Config{Provider: p, Limits: guest.Limits{Time: guest.NoTimeLimit},
		Barrier: func(string) <-chan struct{} {
			switch visits++; visits {
			case 1:
				b.ResetTimer()
			case b.N + 1:
				b.StopTimer()
				cancel()
			}
			return opened
		},
	})
	if result.Outcome != guest.Stopped {
		b.Fatal(result.Err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch, "ns/call")
}

// The way from a guest into the host and back.
func BenchmarkHostCall(b *testing.B) { benchmarkBatches(b, guest.InterruptMetered, "bench_call") }

// Guest, host, C, and back: ibv_poll_cq of an empty queue.
func BenchmarkPollEmptyCQ(b *testing.B) {
	for name, mode := range map[string]guest.InterruptMode{
		"metered": guest.InterruptMetered, "context": guest.InterruptContext,
	} {
		b.Run(name, func(b *testing.B) { benchmarkBatches(b, mode, "bench_poll") })
	}
}

// Two guests, a message there and back; the figures are the guest's own.
func BenchmarkPingpong(b *testing.B) {
	for _, size := range []int{64, 4096, 65536} {
		b.Run(fmt.Sprintf("%d", size), func(b *testing.B) { benchmarkPingpong(b, size) })
	}
}

func benchmarkPingpong(b *testing.B, size int) {
	r, p := newRuntime(b, guest.InterruptMetered), newProvider(b)
	client := compileGo(b, r, pingpong)
	var out output
	for b.Loop() {
		out.Reset()
		server := startServer(b, r, p, &output{})
		result := r.Run(context.Background(), client, guest.Config{Provider: p, Stdout: &out, Stderr: &out,
			Args: []string{"--client=self", "--count=20000", "--writes=20000", fmt.Sprintf("--size=%d", size)}})
		if !result.OK() {
			b.Fatalf("%v\n%s", result.Err, &out)
		}
		<-server.Done()
	}
	for _, line := range strings.Split(out.String(), "\n") {
		var messages int
		var minimum, median float64
		for _, name := range []string{"SEND", "RDMA WRITE"} {
			rest, ok := strings.CutPrefix(strings.TrimSpace(line), name)
			if !ok {
				continue
			}
			if _, err := fmt.Sscan(rest, &messages, &minimum, &median); err != nil {
				b.Fatal(err)
			}
			unit := strings.ReplaceAll(name, " ", "-")
			b.ReportMetric(minimum*1000, unit+"-min-ns")
			b.ReportMetric(median*1000, unit+"-p50-ns")
		}
	}
	b.ReportMetric(0, "ns/op")
}

// How long a guest takes to start, and to come out of the cache.
func BenchmarkStart(b *testing.B) {
	r, p := newRuntime(b, guest.InterruptMetered), newProvider(b)
	hello, err := r.Compile(context.Background(), "../../guests/hello/hello.wasm")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("hello", func(b *testing.B) {
		for b.Loop() {
			if result := r.Run(context.Background(), hello, guest.Config{Provider: p}); !result.OK() {
				b.Fatal(result.Err)
			}
		}
	})
	compileGo(b, r, pingpong) // into the cache
	b.Run("pingpong from the cache", func(b *testing.B) {
		for b.Loop() {
			began := time.Now()
			cached := newRuntime(b, guest.InterruptMetered)
			compileGo(b, cached, pingpong)
			b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms")
		}
	})
}
