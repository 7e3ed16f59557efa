;; Grows by a page at a time for as long as it may, and exits with the number of pages it has then.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (loop $more
      (br_if $more (i32.ge_s (memory.grow (i32.const 1)) (i32.const 0))))
    ;; The last byte is there.
    (i32.store8 (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 1)) (i32.const 1))
    (call $proc_exit (memory.size))))
