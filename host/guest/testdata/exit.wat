;; Exits with the code that its first argument's first byte is.
(module
  (import "wasi_snapshot_preview1" "args_get" (func $args_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (drop (call $args_get (i32.const 64) (i32.const 256)))
    (call $proc_exit (i32.load8_u (i32.load (i32.const 68))))))
