;; Begins with 48 MiB.
(module (memory (export "memory") 768) (func (export "_start")))
