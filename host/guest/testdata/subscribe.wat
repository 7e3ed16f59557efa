;; Waits for more than a computer has. It exits with what poll_oneoff returns for 100,000 subscriptions that fit its
;; memory, and for 89 million. Their size is 0 modulo 2^32, or nearly so.
(module
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 256)
  (func (export "_start")
    (if (i32.ne (call $poll (i32.const 0) (i32.const 0) (i32.const 0x5555556) (i32.const 0)) (i32.const 28))
      (then (call $proc_exit (i32.const 1))))
    (call $proc_exit (call $poll (i32.const 64) (i32.const 64) (i32.const 100000) (i32.const 0)))))
