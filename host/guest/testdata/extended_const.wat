;; A global and the place of data are computed: extended constant expressions.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory 1)
  (global $place i32 (i32.add (i32.const 1000) (i32.mul (i32.const 3) (i32.const 8))))
  (data (i32.sub (i32.const 1032) (i32.const 8)) "\2a")
  (func (export "_start") (call $proc_exit (i32.load8_u (global.get $place)))))
