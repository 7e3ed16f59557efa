;; Valid only once metered, when it would reset the global that stops it.  (Assembled with --no-check.)
(module
  (memory (export "memory") 1)
  (func (export "_start")
    (loop $forever (global.set 1 (i32.const 0)) (br $forever))))
