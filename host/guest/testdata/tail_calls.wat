;; Two functions that call each other in tail position, ten million times: more than any stack has room for.  With an argument
;; (argc is more than 1) they never end.
(module
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory 1)
  (table 2 funcref)
  (elem (i32.const 0) $even $odd)
  (type $step (func (param i32) (result i32)))
  (func $even (type $step)
    (if (i32.eqz (local.get 0)) (then (return (i32.const 7))))
    (return_call $odd (i32.sub (local.get 0) (call $one))))
  (func $odd (type $step)
    (if (i32.eqz (local.get 0)) (then (return (i32.const 8))))
    (return_call_indirect (type $step) (i32.sub (local.get 0) (call $one)) (i32.const 0)))
  (func $one (result i32) (i32.gt_u (i32.const 2) (i32.load (i32.const 0))))
  (func (export "_start")
    (drop (call $args_sizes_get (i32.const 0) (i32.const 4)))
    (call $proc_exit (call $even (i32.const 10000000)))))
