;; Asks for 128 MiB of random numbers, forever.
(module
  (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
  (memory (export "memory") 2048)
  (func (export "_start") (loop $forever
    (drop (call $random_get (i32.const 0) (i32.const 0x7ffffff)))
    (br $forever))))
