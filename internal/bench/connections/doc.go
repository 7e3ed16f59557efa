// Command connections prints what `make bench-rxe` measured in the virtual machine. rdma-core's cmtime and a measure
// step in lockstep make and end connections, step by step. The folder that it is given has a file cmtime.N and a file
// rdmarun.N.jsonl for each round, and a file "kernel".
//
// The machine is emulated, so its microseconds mean nothing; what counts is the ratio of two programs that took turns
// in it.  It exits 1 when the ratio of all steps together misses its mark.
package main
