//go:build wasip1

// Command pingpong is a guest of rdmarun: two of it, a server and a client, exchange messages and then RDMA
// WRITEs, verify every byte, and the client prints the latency of one way.
//
//	rdmarun guest run pingpong.wasm -- --server
//	rdmarun guest run pingpong.wasm -- --client 10.1.0.14
//
// The client says how much of what; it tells the server in the private data of its request.
package main
