;; Spins forever, in a module that cannot be metered.
(module (func (export "_start") (loop $forever (br $forever))))
