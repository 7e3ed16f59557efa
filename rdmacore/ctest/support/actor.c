#include "ctest/support/actor.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctest/support/check.h"

#define ACTOR_WORDS 16 /* of a command */

static int hosts[ACTOR_HOSTS]; /* descriptors of their namespaces */

static struct {
	int fd;
	void (*happen)(void);
} watched = {.fd = -1};

void actor_need_root(char **words)
{
	char *sudo[ACTOR_WORDS + 1] = {"sudo", "-n"};

	if (!geteuid())
		return;
	for (int word = 0; words[word] && word + 2 < ACTOR_WORDS; word++)
		sudo[word + 2] = words[word];
	(void)execvp("sudo", sudo);
	CHECK(!"this test needs root, for hosts and users of its own: run it as root, or with sudo(8) that asks for no password");
}

void actor_configure(int host, const char *command)
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (!child) {
		CHECK(!setns(hosts[host], CLONE_NEWNET));
		execl("/bin/sh", "sh", "-ec", command, (char *)NULL);
		_exit(127);
	}
	CHECK(waitpid(child, &status, 0) == child && !status);
}

static int own_network(void)
{
	int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

void actor_make_hosts(int count)
{
	char command[512];

	CHECK(count <= ACTOR_HOSTS);
	for (int host = 0; host < count; host++) {
		CHECK(!unshare(CLONE_NEWNET));
		hosts[host] = own_network();
	}
	CHECK(!unshare(CLONE_NEWNET)); /* that of the bridge */
	CHECK(!system("ip link set lo up && ip link add bridge type bridge && ip link set bridge up"));
	for (int host = 0; host < count; host++) {
		snprintf(command, sizeof(command),
			 "ip link add port%d type veth peer name wire netns /proc/%d/fd/%d && ip link set port%d master bridge up",
			 host, getpid(), hosts[host], host);
		CHECK(!system(command));
		snprintf(command, sizeof(command), "ip link set lo up; ip address add 192.0.2.%d/24 dev wire; ip link set wire up", host + 1);
		actor_configure(host, command);
	}
}

void actor_watch(int fd, void (*happen)(void))
{
	watched.fd = fd;
	watched.happen = happen;
}

static _Noreturn void obey(int commands, int answers)
{
	for (;;) {
		struct pollfd readable[2] = {{.fd = commands, .events = POLLIN}, {.fd = watched.fd, .events = POLLIN}};
		void (*act)(void);

		CHECK(poll(readable, 2, -1) > 0);
		if (readable[1].revents)
			watched.happen();
		if (!readable[0].revents)
			continue;
		if (read(commands, &act, sizeof(act)) != sizeof(act) || !act)
			_exit(0);
		act();
		CHECK(write(answers, "", 1) == 1);
	}
}

struct actor actor_start(int host, uid_t user)
{
	int to[2], from[2];
	struct actor actor;

	CHECK(!pipe2(to, O_CLOEXEC) && !pipe2(from, O_CLOEXEC));
	actor = (struct actor){.pid = fork(), .to = to[1], .from = from[0]};
	CHECK(actor.pid >= 0);
	if (actor.pid) {
		CHECK(!close(to[0]) && !close(from[1]));
		return actor;
	}
	CHECK(!close(to[1]) && !close(from[0]));
	CHECK(host == ACTOR_HERE || !setns(hosts[host], CLONE_NEWNET));
	CHECK(!setgroups(0, NULL) && !setresgid(user, user, user) && !setresuid(user, user, user));
	CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
	obey(to[0], from[1]);
}

void actor_begin(struct actor *actor, void (*act)(void))
{
	CHECK(write(actor->to, &act, sizeof(act)) == sizeof(act)); /* it is a copy of this process, with the same addresses */
}

void actor_await(struct actor *actor)
{
	char byte;

	CHECK(read(actor->from, &byte, 1) == 1); /* 0: it failed, and has printed why */
}

void actor_do(struct actor *actor, void (*act)(void))
{
	actor_begin(actor, act);
	actor_await(actor);
}

void actor_end(struct actor *actor)
{
	int status;

	actor_begin(actor, NULL); /* others have copies of the pipe, so its end would not be seen */
	CHECK(!close(actor->to) && !close(actor->from));
	CHECK(waitpid(actor->pid, &status, 0) == actor->pid && WIFEXITED(status) && !WEXITSTATUS(status));
}
