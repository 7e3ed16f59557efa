;; Begins with a table of 800 MB.
(module
  (memory (export "memory") 1)
  (table 100000000 funcref)
  (func (export "_start")))
