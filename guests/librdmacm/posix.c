/*
 * What sdk/librdmacm has of POSIX in addition to threads. That is signals and timers, pipes, select, epoll and
 * timerfd, addresses and sockets ("serve", and a role's name as its client), and the host.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define CHECK(what)                                                                                  \
	do {                                                                                         \
		if (!(what)) {                                                                       \
			printf("line %d: %s does not hold: %s\n", __LINE__, #what, strerror(errno)); \
			exit(1);                                                                     \
		}                                                                                    \
	} while (0)

static volatile sig_atomic_t alarms, users;

static void on_alarm(int number) { alarms += number == SIGALRM; }

static void on_user(int number, siginfo_t *info, void *unused)
{
	(void)unused;
	users += number == SIGUSR1 && info->si_pid == getpid();
}

static void *write_later(void *fd)
{
	usleep(1000);
	CHECK(write(*(int *)fd, "late", 4) == 4);
	return NULL;
}

static void signals(void)
{
	struct sigaction action = {.sa_handler = on_alarm}, old;
	struct itimerval soon = {.it_value.tv_usec = 1000}, every = {.it_value.tv_usec = 1000, .it_interval.tv_usec = 1000}, left;
	struct timespec second = {.tv_sec = 1000}, remains;
	struct timespec raw;
	sigset_t set, before;
	int number;

	CHECK(!sigaction(SIGALRM, &action, &old) && old.sa_handler == SIG_DFL);
	CHECK(sigaction(SIGKILL, &action, NULL) < 0 && errno == EINVAL);
	CHECK(!setitimer(ITIMER_REAL, &soon, NULL));
	CHECK(nanosleep(&second, &remains) < 0 && errno == EINTR && alarms == 1 && remains.tv_sec == 999);
	CHECK(!setitimer(ITIMER_REAL, &every, NULL));
	while (alarms < 4)
		pause();
	every.it_value.tv_usec = 0;
	CHECK(!setitimer(ITIMER_REAL, &every, &left) && left.it_interval.tv_usec == 1000);
	CHECK(!alarm(1000) && alarm(0) == 1000 && !alarm(0));

	action = (struct sigaction){.sa_sigaction = on_user, .sa_flags = SA_SIGINFO};
	CHECK(!sigaction(SIGUSR1, &action, NULL) && !kill(getpid(), SIGUSR1) && users == 1);
	CHECK(kill(getpid() + 1, 0) < 0 && errno == ESRCH);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK(!pthread_sigmask(SIG_BLOCK, &set, &before) && !sigismember(&before, SIGUSR1) && !raise(SIGUSR1) && users == 1);
	CHECK(!sigwait(&set, &number) && number == SIGUSR1 && users == 1);
	CHECK(!raise(SIGUSR1) && !sigprocmask(SIG_SETMASK, &before, NULL) && users == 2);
	CHECK(signal(SIGPIPE, SIG_IGN) == SIG_DFL);
	CHECK(!clock_gettime(CLOCK_MONOTONIC_RAW, &raw));
}

static void pipes(void)
{
	static char much[100000];
	int ends[2];
	pthread_t thread;
	struct pollfd fd = {.events = POLLIN};
	fd_set set;
	struct timeval no_time = {0};
	char got[8];

	CHECK(!pipe(ends));
	fd.fd = ends[0];
	CHECK(!poll(&fd, 1, 1));
	CHECK(!pthread_create(&thread, NULL, write_later, &ends[1]) && read(ends[0], got, sizeof(got)) == 4 && !memcmp(got, "late", 4));
	CHECK(!pthread_join(thread, NULL));
	CHECK(!pthread_create(&thread, NULL, write_later, &ends[1]));
	FD_ZERO(&set);
	FD_SET(ends[0], &set);
	CHECK(select(ends[0] + 1, &set, NULL, NULL, NULL) == 1 && FD_ISSET(ends[0], &set) && !pthread_join(thread, NULL));
	CHECK(read(ends[0], got, 4) == 4 && !select(ends[0] + 1, &set, NULL, NULL, &no_time) && !FD_ISSET(ends[0], &set));
	CHECK(!fcntl(ends[1], F_SETFL, O_NONBLOCK) && write(ends[1], much, sizeof(much)) == 65536);
	CHECK(write(ends[1], much, 1) < 0 && errno == EAGAIN);
	CHECK(!close(ends[0]) && write(ends[1], much, 1) < 0 && errno == EPIPE && !close(ends[1]));
	CHECK(!pipe2(ends, O_NONBLOCK) && read(ends[0], got, 1) < 0 && errno == EAGAIN);
	CHECK(!close(ends[1]) && !read(ends[0], got, 1) && !close(ends[0]));
}

static void epolls(void)
{
	struct itimerspec soon = {.it_value.tv_nsec = 1000000, .it_interval.tv_nsec = 1000000};
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = 7}, found[2];
	int epoll = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK), ends[2];
	pthread_t thread;
	uint64_t expired;

	CHECK(epoll >= 0 && timer >= 0 && !pipe(ends));
	CHECK(read(timer, &expired, sizeof(expired)) < 0 && errno == EAGAIN);
	CHECK(!epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event) && epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event) < 0 && errno == EEXIST);
	CHECK(epoll_ctl(epoll, EPOLL_CTL_MOD, ends[0], &event) < 0 && errno == ENOENT);
	CHECK(!epoll_wait(epoll, found, 2, 1));
	CHECK(!timerfd_settime(timer, 0, &soon, NULL) && epoll_wait(epoll, found, 2, -1) == 1 && found[0].data.u64 == 7 && found[0].events == EPOLLIN);
	CHECK(read(timer, &expired, sizeof(expired)) == sizeof(expired) && expired >= 1);
	soon.it_value.tv_nsec = 0;
	CHECK(!timerfd_settime(timer, 0, &soon, NULL) && !close(timer));
	event.events = EPOLLIN | EPOLLONESHOT;
	event.data.fd = ends[0];
	CHECK(!epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event) && !pthread_create(&thread, NULL, write_later, &ends[1]));
	CHECK(epoll_wait(epoll, found, 2, -1) == 1 && found[0].data.fd == ends[0] && !pthread_join(thread, NULL));
	CHECK(!epoll_wait(epoll, found, 2, 0)); /* one shot */
	CHECK(!close(ends[0]) && !close(ends[1]) && !close(epoll) && epoll_wait(epoll, found, 2, 0) < 0 && errno == EBADF);
}

static void machine(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(7471)};
	char host[NI_MAXHOST], service[NI_MAXSERV], name[IF_NAMESIZE];
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_gid_entry gid;
	struct addrinfo *found;
	struct ifaddrs *interfaces;
	struct rusage usage;

	address.sin_addr.s_addr = inet_addr("192.0.2.1");
	CHECK(!strcmp(inet_ntoa(address.sin_addr), "192.0.2.1") && inet_addr("nonsense") == INADDR_NONE);
	CHECK(!getnameinfo((void *)&address, sizeof(address), host, sizeof(host), service, sizeof(service), NI_NUMERICHOST));
	CHECK(!strcmp(host, "192.0.2.1") && !strcmp(service, "7471"));
	CHECK(getnameinfo((void *)&address, sizeof(address), host, 2, NULL, 0, 0) == EAI_OVERFLOW);
	CHECK(!gethostname(host, sizeof(host)) && !getaddrinfo(host, "7471", NULL, &found));
	freeaddrinfo(found);
	CHECK(!getifaddrs(&interfaces) && interfaces && interfaces->ifa_addr && interfaces->ifa_flags & IFF_UP && !interfaces->ifa_next);
	CHECK(if_nametoindex(interfaces->ifa_name) == 1 && !strcmp(if_indextoname(1, name), interfaces->ifa_name));
	freeifaddrs(interfaces);
	CHECK(getpagesize() == sysconf(_SC_PAGESIZE) && !mlock(&address, sizeof(address)) && !mlockall(1) && !getrusage(RUSAGE_SELF, &usage));
	CHECK(ENODATA != ENOENT && socket(AF_INET, SOCK_DGRAM, 0) < 0 && errno == EPROTONOSUPPORT);

	CHECK(ibv_rate_to_mbps(IBV_RATE_10_GBPS) == 10000 && mbps_to_ibv_rate(10000) == IBV_RATE_10_GBPS);
	CHECK(ibv_rate_to_mult(IBV_RATE_20_GBPS) == 8 && mult_to_ibv_rate(8) == IBV_RATE_20_GBPS && ibv_rate_to_mult(IBV_RATE_56_GBPS) == -1);
	CHECK(list && list[0] && !ibv_query_gid_ex(ibv_open_device(list[0]), 1, 0, &gid, 0) && gid.port_num == 1);
}

static void transfer(const char *server)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(9000)};
	struct iovec parts[] = {{.iov_base = (char[]){"he"}, .iov_len = 2}, {.iov_base = (char[]){"llo"}, .iov_len = 4}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
	socklen_t length = sizeof(address);
	char got[8] = "";
	int fd = socket(AF_INET, SOCK_STREAM, 0), listener = fd;

	if (!server) {
		CHECK(!bind(listener, (void *)&address, sizeof(address)) && !listen(listener, 1));
		CHECK(!getsockname(listener, (void *)&address, &length) && address.sin_port == htons(9000));
		fd = accept(listener, NULL, NULL);
		CHECK(fd >= 0 && recv(fd, got, 6, MSG_WAITALL) == 6 && !strcmp(got, "hello"));
		CHECK(send(fd, got, 6, MSG_NOSIGNAL) == 6);
		CHECK(!close(listener));
	} else {
		CHECK(getpeername(fd, (void *)&address, &length) < 0 && errno == ENOTCONN);
		CHECK(!getaddrinfo(server, "9000", &hints, &found) && !connect(fd, found->ai_addr, found->ai_addrlen));
		CHECK(!getpeername(fd, (void *)&address, &length) && address.sin_port == htons(9000));
		CHECK(sendmsg(fd, &message, MSG_NOSIGNAL) == 6);
		CHECK(recvfrom(fd, got, 6, MSG_WAITALL, NULL, NULL) == 6 && !strcmp(got, "hello"));
		freeaddrinfo(found);
	}
	CHECK(!close(fd));
	printf("posix: exchanged messages\n");
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "alarm")) {
		alarm(1);
		poll(NULL, 0, -1);
	}
	if (argc > 1 && !strcmp(argv[1], "wait"))
		for (;;)
			poll(NULL, 0, -1);
	if (argc > 1 && !strcmp(argv[1], "err"))
		errx(5, "errx says %d", 5);
	if (argc > 1) {
		transfer(strcmp(argv[1], "serve") ? argv[1] : NULL);
		return 0;
	}
	signals();
	pipes();
	epolls();
	machine();
	printf("posix: all that was promised holds\n");
	return 0;
}
