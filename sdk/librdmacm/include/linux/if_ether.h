/* What rdma-core's headers use of it. */
#ifndef LIBRDMACM_LINUX_IF_ETHER_H
#define LIBRDMACM_LINUX_IF_ETHER_H

#define ETH_ALEN 6
#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86DD

#endif
