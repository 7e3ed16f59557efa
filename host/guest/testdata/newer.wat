;; Imports what no host has, what this one has with another signature, and what is of another world.
(module
  (import "rdma" "teleport" (func (param i32) (result i32)))
  (import "rdma" "listen" (func (param i32 i64) (result i32)))
  (import "rdma" "abi_version" (func (result i32)))
  (import "wasi_snapshot_preview1" "sock_listen" (func (param i32) (result i32)))
  (import "env" "puts" (func (param i32) (result i32)))
  (import "rdma" "memory" (memory 1))
  (func (export "_start")))
