;; Measures what a call of the host costs: 100 000 calls of a function that does nothing, between two visits to a
;; barrier. It ends when the barrier does not let it pass.
(module
  (import "rdma" "barrier" (func $barrier (param i32 i32 i64) (result i32)))
  (import "rdma" "stop_requested" (func $stop_requested (result i32)))
  (memory (export "memory") 1)
  (func (export "_start") (local $left i32)
    (loop $batch
      (drop (call $barrier (i32.const 64) (i32.const 0) (i64.const -1)))
      (local.set $left (i32.const 100000))
      (loop $next
        (drop (call $stop_requested))
        (local.set $left (i32.sub (local.get $left) (i32.const 1)))
        (br_if $next (local.get $left)))
      (br $batch))))
