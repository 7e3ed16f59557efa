;; As bench_call, with polls of an empty completion queue: guest, host, C core and back.
(module
  (import "rdma" "barrier" (func $barrier (param i32 i32 i64) (result i32)))
  (import "rdma" "create_cq" (func $create_cq (param i32 i32) (result i32)))
  (import "rdma" "poll_cq" (func $poll_cq (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start") (local $left i32) (local $cq i32)
    (local.set $cq (call $create_cq (i32.const 0) (i32.const 16)))
    (loop $batch
      (drop (call $barrier (i32.const 64) (i32.const 0) (i64.const -1)))
      (local.set $left (i32.const 100000))
      (loop $next
        (if (call $poll_cq (local.get $cq) (i32.const 1024) (i32.const 16)) (then (unreachable)))
        (local.set $left (i32.sub (local.get $left) (i32.const 1)))
        (br_if $next (local.get $left)))
      (br $batch))))
