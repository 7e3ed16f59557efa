;; Reads outside its memory, two functions deep.
(module
  (memory (export "memory") 1)
  (func $read (result i32) (i32.load (i32.const 65536)))
  (func $caller (drop (call $read)))
  (func (export "_start") (call $caller)))
