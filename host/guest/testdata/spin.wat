;; Spins forever in the smallest of loops.
(module
  (memory (export "memory") 1)
  (func (export "_start") (loop $forever (br $forever))))
