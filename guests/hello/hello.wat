;; hello: a guest written by hand, with nothing but the ABI (docs/abi.md).  It listens, connects to itself,
;; sends a sentence from one end of the connection to the other, compares what arrived, and prints it.
;;
;;   wat2wasm hello.wat && rdmarun guest run hello.wasm
;;
;; Linear memory:
;;    1024  addr_info       64 bytes
;;    1088  address         24, of the listener
;;    1112  qp_init_attr    40
;;    1152  cm_event       296
;;    1448  mr              16, of the message;   1464  mr  16, of the inbox
;;    1480  sge             16;  1496  send_wr  56;  1552  recv_wr  16
;;    1568  wc              48
;;    1616  iovec            8, for fd_write;  1624  its count
;;    2048  the message;  3072  the inbox;  4096  error text
(module
  (import "rdma" "create_event_channel" (func $create_event_channel (result i32)))
  (import "rdma" "destroy_event_channel" (func $destroy_event_channel (param i32) (result i32)))
  (import "rdma" "alloc_pd" (func $alloc_pd (param i32) (result i32)))
  (import "rdma" "dealloc_pd" (func $dealloc_pd (param i32) (result i32)))
  (import "rdma" "reg_mr" (func $reg_mr (param i32 i32 i32 i32 i32) (result i32)))
  (import "rdma" "dereg_mr" (func $dereg_mr (param i32) (result i32)))
  (import "rdma" "create_ep" (func $create_ep (param i32 i32 i32 i32) (result i32)))
  (import "rdma" "destroy_ep" (func $destroy_ep (param i32) (result i32)))
  (import "rdma" "local_address" (func $local_address (param i32 i32) (result i32)))
  (import "rdma" "device_address" (func $device_address (param i32 i32) (result i32)))
  (import "rdma" "listen" (func $listen (param i32 i32) (result i32)))
  (import "rdma" "connect" (func $connect (param i32 i32) (result i32)))
  (import "rdma" "accept" (func $accept (param i32 i32) (result i32)))
  (import "rdma" "disconnect" (func $disconnect (param i32) (result i32)))
  (import "rdma" "wait_event" (func $wait_event (param i32 i32 i32 i64) (result i32)))
  (import "rdma" "ep_qp" (func $ep_qp (param i32) (result i32)))
  (import "rdma" "ep_send_cq" (func $ep_send_cq (param i32) (result i32)))
  (import "rdma" "ep_recv_cq" (func $ep_recv_cq (param i32) (result i32)))
  (import "rdma" "post_send" (func $post_send (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "rdma" "post_recv" (func $post_recv (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "rdma" "wait_cq" (func $wait_cq (param i32 i32 i32 i64) (result i32)))
  (import "rdma" "error_text" (func $error_text (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))

  (memory (export "memory") 1)
  (data (i32.const 2048) "hello from one end of a queue pair to the other\n")
  (data (i32.const 2200) "hello: the inbox holds something else\n")
  (data (i32.const 2300) "hello: another event than the one waited for\n")
  (data (i32.const 2400) "hello: a work request failed\n")
  (global $length i32 (i32.const 48))

  (func $print (param $fd i32) (param $text i32) (param $length i32)
    (i32.store (i32.const 1616) (local.get $text))
    (i32.store (i32.const 1620) (local.get $length))
    (drop (call $fd_write (local.get $fd) (i32.const 1616) (i32.const 1) (i32.const 1624))))

  (func $fail (param $text i32) (param $length i32)
    (call $print (i32.const 2) (local.get $text) (local.get $length))
    (call $proc_exit (i32.const 1))
    (unreachable))

  ;; A negative result is an errno; error_text has the sentence.
  (func $must (param $result i32) (result i32)
    (local $length i32)
    (if (i32.lt_s (local.get $result) (i32.const 0))
      (then
        (local.set $length (call $error_text (i32.const 4096) (i32.const 500)))
        (i32.store8 (i32.add (i32.const 4096) (local.get $length)) (i32.const 10))
        (call $fail (i32.const 4096) (i32.add (local.get $length) (i32.const 1)))))
    (local.get $result))

  (func $done (param $result i32) (drop (call $must (local.get $result))))

  ;; Waits five seconds for the endpoint's next event, which must be of that type with status 0; returns
  ;; the endpoint it names.
  (func $expect (param $channel i32) (param $ep i32) (param $type i32) (result i32)
    (i32.store (i32.const 1152) (i32.const 296)) ;; struct_size
    (call $done (call $wait_event (local.get $channel) (local.get $ep) (i32.const 1152) (i64.const 5000000000)))
    (if (i32.or (i32.ne (i32.load (i32.const 1164)) (local.get $type)) ;; event
                (i32.load (i32.const 1168)))                           ;; status
      (then (call $fail (i32.const 2300) (i32.const 45))))
    (i32.load (i32.const 1156))) ;; ep

  ;; Waits five seconds for one completion, which must be a success.
  (func $complete (param $cq i32)
    (call $done (call $wait_cq (local.get $cq) (i32.const 1568) (i32.const 1) (i64.const 5000000000)))
    (if (i32.load (i32.const 1576)) ;; status
      (then (call $fail (i32.const 2400) (i32.const 29)))))

  (func $same (result i32)
    (local $at i32)
    (loop $next
      (if (i32.ne (i32.load8_u (i32.add (i32.const 2048) (local.get $at)))
                  (i32.load8_u (i32.add (i32.const 3072) (local.get $at))))
        (then (return (i32.const 0))))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $at) (global.get $length))))
    (i32.const 1))

  (func (export "_start")
    (local $channel i32) (local $pd i32) (local $listener i32) (local $ep i32) (local $child i32)
    (local $message i32) (local $inbox i32)
    (local.set $channel (call $must (call $create_event_channel)))
    (local.set $pd (call $must (call $alloc_pd (i32.const 0))))
    (local.set $message (call $must (call $reg_mr (local.get $pd)
      (i32.const 2048) (global.get $length) (i32.const 0) (i32.const 1448))))
    (local.set $inbox (call $must (call $reg_mr (local.get $pd)
      (i32.const 3072) (global.get $length) (i32.const 1 (;LOCAL_WRITE;)) (i32.const 1464))))

    ;; qp_init_attr: RC, 4 requests each way, 1 buffer each, and CQs of its own.
    (i32.store (i32.const 1112) (i32.const 40)) ;; struct_size
    (i32.store (i32.const 1116) (i32.const 2))  ;; qp_type
    (i32.store (i32.const 1120) (i32.const 4))  ;; max_send_wr
    (i32.store (i32.const 1124) (i32.const 4))  ;; max_recv_wr
    (i32.store (i32.const 1128) (i32.const 1))  ;; max_send_sge
    (i32.store (i32.const 1132) (i32.const 1))  ;; max_recv_sge

    ;; Passive, any address, any port: local_address returns which.
    (i32.store (i32.const 1024) (i32.const 64)) ;; struct_size
    (i32.store (i32.const 1028) (i32.const 1))  ;; flags: RAI_PASSIVE
    (local.set $listener (call $must (call $create_ep (local.get $channel) (i32.const 1024)
      (local.get $pd) (i32.const 1112))))
    (call $done (call $listen (local.get $listener) (i32.const 1)))
    (call $done (call $local_address (local.get $listener) (i32.const 1088)))

    ;; Active, to this device's own address.
    (i32.store (i32.const 1028) (i32.const 0))
    (call $done (call $device_address (i32.const 0) (i32.const 1064))) ;; destination
    (i32.store16 (i32.const 1066) (i32.load16_u (i32.const 1090)))     ;; its port
    (local.set $ep (call $must (call $create_ep (local.get $channel) (i32.const 1024)
      (local.get $pd) (i32.const 1112))))

    (call $done (call $connect (local.get $ep) (i32.const 0)))
    (local.set $child (call $expect (local.get $channel) (local.get $listener) (i32.const 4 (;CONNECT_REQUEST;))))

    ;; The receive is posted before the peer can send.
    (i64.store (i32.const 1480) (i64.const 3072))
    (i32.store (i32.const 1488) (global.get $length))
    (i32.store (i32.const 1492) (i32.load (i32.const 1472))) ;; lkey of the inbox
    (i64.store (i32.const 1552) (i64.const 1))               ;; wr_id
    (i32.store (i32.const 1564) (i32.const 1))               ;; num_sge
    (call $done (call $post_recv (call $must (call $ep_qp (local.get $child)))
      (i32.const 1552) (i32.const 1) (i32.const 1480) (i32.const 1) (i32.const 0)))
    (call $done (call $accept (local.get $child) (i32.const 0)))
    (drop (call $expect (local.get $channel) (local.get $ep) (i32.const 9 (;ESTABLISHED;))))
    (drop (call $expect (local.get $channel) (local.get $child) (i32.const 9)))

    (i64.store (i32.const 1480) (i64.const 2048))
    (i32.store (i32.const 1492) (i32.load (i32.const 1456))) ;; lkey of the message
    (i64.store (i32.const 1496) (i64.const 2))               ;; wr_id
    (i32.store (i32.const 1504) (i32.const 2))               ;; opcode: SEND
    (i32.store (i32.const 1508) (i32.const 2))               ;; send_flags: SIGNALED
    (i32.store (i32.const 1516) (i32.const 1))               ;; num_sge
    (call $done (call $post_send (call $must (call $ep_qp (local.get $ep)))
      (i32.const 1496) (i32.const 1) (i32.const 1480) (i32.const 1) (i32.const 0)))
    (call $complete (call $must (call $ep_send_cq (local.get $ep))))
    (call $complete (call $must (call $ep_recv_cq (local.get $child))))

    (if (i32.eqz (call $same)) (then (call $fail (i32.const 2200) (i32.const 38))))
    (call $print (i32.const 1) (i32.const 3072) (global.get $length))

    ;; The other side answers with a disconnect of its own, which is what the first one waits for.
    (call $done (call $disconnect (local.get $ep)))
    (drop (call $expect (local.get $channel) (local.get $child) (i32.const 10 (;DISCONNECTED;))))
    (call $done (call $disconnect (local.get $child)))
    (drop (call $expect (local.get $channel) (local.get $ep) (i32.const 10)))
    (call $done (call $destroy_ep (local.get $child)))
    (call $done (call $destroy_ep (local.get $ep)))
    (call $done (call $destroy_ep (local.get $listener)))
    (call $done (call $dereg_mr (local.get $inbox)))
    (call $done (call $dereg_mr (local.get $message)))
    (call $done (call $dealloc_pd (local.get $pd)))
    (call $done (call $destroy_event_channel (local.get $channel)))))
