;; Writes 128 MiB a million times with one call, having written nothing sixteen million times with another.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2048)
  (func (export "_start") (local $at i32)
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 0xffffff) (i32.const 0)))
    (loop $more
      (i32.store (local.get $at) (i32.const 0))
      (i32.store offset=4 (local.get $at) (i32.const 0x7ffffff))
      (br_if $more (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 8))) (i32.const 8000000))))
    (loop $forever
      (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1000000) (i32.const 0)))
      (br $forever))))
