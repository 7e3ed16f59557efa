;; Counts to 1000 times 65536, and ends.
(module
  (memory (export "memory") 1 1)
  (func (export "_start") (local $i i32)
    (loop $next
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $i) (i32.const 65536000))))))
