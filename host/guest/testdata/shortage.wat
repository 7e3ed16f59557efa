;; Grows by a page at a time until it may not, and ends as an allocator of AssemblyScript does that gets no memory.
(module
  (memory (export "memory") 1)
  (func (export "_start")
    (loop $more
      (br_if $more (i32.ge_s (memory.grow (i32.const 1)) (i32.const 0))))
    (unreachable)))
