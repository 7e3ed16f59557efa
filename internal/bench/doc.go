// Command bench measures what rdmarun promises to be fast at. It prints each measured value next to its reference,
// both from this one run. `make bench` builds what it needs and starts it:
//
//	bench -native build/core/plain -rdmarun bin/rdmarun -guest guests/pingpong.wasm -scenario scenarios/rping.yaml
//
// With -peers it holds soft against other implementations that the distribution has: libfabric's and UCX's programs,
// side by side with rdmarun's.  It skips programs that are not installed, and reports that.
//
// It exits 1 when a row misses its mark.  Figures of a shared machine vary; that is why each row is the
// median of several rounds, and why no test asserts them.
package main
