/* A client that connects to the server at argv[1], port argv[2], and ends without a word to it. */
#include <rdma/rdma_cma.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *info;
	struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7};
	struct rdma_cm_id *id;

	if (argc != 3 || rdma_getaddrinfo(argv[1], argv[2], &hints, &info) || rdma_create_ep(&id, info, NULL, &attr) ||
	    rdma_connect(id, &param)) {
		perror("connect");
		return 1;
	}
	return 0;
}
