;; What metering costs, at its worst: loops and calls with next to nothing in them.
(module (memory (export "memory") 1)
 (func (export "lcg") (param $n i32) (result i32) (local $x i32)
  (loop $l
   (local.set $x (i32.add (i32.mul (local.get $x) (i32.const 1664525)) (i32.const 1013904223)))
   (local.set $n (i32.sub (local.get $n) (i32.const 1)))
   (br_if $l (local.get $n)))
  (local.get $x))
 (func (export "load") (param $n i32) (result i32) (local $x i32)
  (loop $l
   (local.set $x (i32.add (local.get $x) (i32.load (i32.const 1024))))
   (local.set $n (i32.sub (local.get $n) (i32.const 1)))
   (br_if $l (local.get $n)))
  (local.get $x))
 (func $fib (export "fib") (param $n i32) (result i32)
  (if (result i32) (i32.lt_u (local.get $n) (i32.const 2)) (then (local.get $n))
   (else (i32.add (call $fib (i32.sub (local.get $n) (i32.const 1))) (call $fib (i32.sub (local.get $n) (i32.const 2)))))))
)
