;; Grows its two tables in turn for as long as it may, and exits with the number of MiB that their elements have.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)
  (table $functions 10 funcref)
  (table $externs 10 externref)
  (func (export "_start")
    (loop $more
      (br_if $more (i32.and
        (i32.ge_s (table.grow $functions (ref.null func) (i32.const 1000)) (i32.const 0))
        (i32.ge_s (table.grow $externs (ref.null extern) (i32.const 1000)) (i32.const 0)))))
    (call $proc_exit (i32.shr_u (i32.add (table.size $functions) (table.size $externs)) (i32.const 17)))))
