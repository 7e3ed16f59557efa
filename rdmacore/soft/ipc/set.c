#include "soft/ipc/ipc.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

int soft_ipc_watch(struct soft_ipc *ipc, struct soft_ipc_socket *socket, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = socket};
	int result;

	soft_mutex_expect(ipc->lock);
	if (!ipc->watched) {
		result = soft_poller_add(&ipc->fabric->poller, &ipc->source, ipc->epoll, EPOLLIN, ipc->ready);
		if (result)
			return -result;
		ipc->watched = true;
	}
	return epoll_ctl(ipc->epoll, EPOLL_CTL_ADD, socket->fd, &event) ? errno : 0;
}

void soft_ipc_rewatch(struct soft_ipc *ipc, struct soft_ipc_socket *socket, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = socket};

	soft_mutex_expect(ipc->lock);
	/* Cannot fail for a socket in the instance. */
	epoll_ctl(ipc->epoll, EPOLL_CTL_MOD, socket->fd, &event);
}

void soft_ipc_close(struct soft_ipc *ipc, struct soft_ipc_socket *socket)
{
	/*
	 * A forked child that executes no other program has a copy of the descriptor. The socket would stay in the
	 * instance, and the other end would not see that it is closed.
	 */
	epoll_ctl(ipc->epoll, EPOLL_CTL_DEL, socket->fd, NULL);
	shutdown(socket->fd, SHUT_RDWR);
	close(socket->fd);
	socket->fd = -1;
}
