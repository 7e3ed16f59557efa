;; Makes CQs of 65536 entries for as long as it may, and exits with the errno that ends it.
(module
  (import "rdma" "create_cq" (func $create_cq (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)
  (func (export "_start") (local $result i32)
    (loop $more
      (br_if $more (i32.gt_s (local.tee $result (call $create_cq (i32.const 0) (i32.const 65536))) (i32.const 0))))
    (call $proc_exit (i32.sub (i32.const 0) (local.get $result)))))
