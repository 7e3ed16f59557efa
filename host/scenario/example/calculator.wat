;; A scenario calls functions of this guest while it waits at the barrier "serve".
(module
  (import "rdma" "barrier" (func $barrier (param i32 i32 i64) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "serve")
  (func (export "add") (param i32 i32) (result i32)
    (i32.add (local.get 0) (local.get 1)))
  (func (export "_start")
    (drop (call $barrier (i32.const 64) (i32.const 5) (i64.const -1)))))
