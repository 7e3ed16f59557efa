//go:build wasip1

// Command pingpong is a guest of rdmarun. Two of it, a server and a client, exchange messages and then RDMA WRITEs,
// and verify every byte. The client prints the latency of one direction.
//
//	rdmarun guest run pingpong.wasm -- --server
//	rdmarun guest run pingpong.wasm -- --client 10.1.0.14
//
// The client chooses what is sent, and how much. The private data of its request has these numbers for the server.
package main
