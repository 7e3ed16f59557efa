;; Prints a line forever, and exits with the errno when it cannot.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "a line of nineteen\n")
  (data (i32.const 8) "\40\00\00\00\13\00\00\00")
  (func (export "_start") (local $errno i32)
    (loop $more
      (br_if $more (i32.eqz (local.tee $errno (call $fd_write (i32.const 1) (i32.const 8) (i32.const 1) (i32.const 0))))))
    (call $proc_exit (local.get $errno))))
