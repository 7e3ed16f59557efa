;; A memory for several threads.
(module (memory (export "memory") 1 1 shared) (func (export "_start")))
