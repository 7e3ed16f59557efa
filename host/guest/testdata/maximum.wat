;; Exits with the number of pages that its memory grows to, which has a maximum of 3.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1 3)
  (func (export "_start")
    (loop $more (br_if $more (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
    (call $exit (memory.size))))
