;; Fills and copies 128 MiB forever.
(module
  (memory (export "memory") 2048)
  (func (export "_start") (loop $forever
    (memory.fill (i32.const 0) (i32.const 1) (i32.const 0x7ffffff))
    (memory.copy (i32.const 1) (i32.const 0) (i32.const 0x7fffff0))
    (br $forever))))
