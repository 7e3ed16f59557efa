;; A library: nothing to run.
(module (memory (export "memory") 1) (func (export "_initialize")))
