;; Polls a queue that stays empty, 65536 times a call, forever.
(module
  (import "rdma" "create_cq" (func $create_cq (param i32 i32) (result i32)))
  (import "rdma" "spin_cq" (func $spin_cq (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start") (local $cq i32)
    (local.set $cq (call $create_cq (i32.const 0) (i32.const 16)))
    (loop $forever
      (drop (call $spin_cq (local.get $cq) (i32.const 64) (i32.const 16) (i32.const 65536)))
      (br $forever))))
