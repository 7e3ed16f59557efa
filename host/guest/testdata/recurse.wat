;; Takes forever without a loop: a call that calls itself twice, 100 deep.
(module
  (memory (export "memory") 1)
  (func $recurse (param $depth i32)
    (if (local.get $depth)
      (then
        (call $recurse (i32.sub (local.get $depth) (i32.const 1)))
        (call $recurse (i32.sub (local.get $depth) (i32.const 1))))))
  (func (export "_start") (call $recurse (i32.const 100))))
