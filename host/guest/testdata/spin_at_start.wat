;; Spins forever in the start function, which runs before _start can.
(module
  (memory (export "memory") 1)
  (func $start (loop $forever (br $forever)))
  (start $start)
  (func (export "_start")))
