/* What is dropped is said in a line a second at most and a few in all, and nobody waits for who reads them. */
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "ctest/support/check.h"
#include "soft/base/fabric.h"

#define LINES 20

static const union ibv_gid ipv4 = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2, [15] = 9}};
static const union ibv_gid ipv6 = {.raw = {0x20, 0x01, 0x0d, 0xb8, [15] = 9}};

struct told {
	struct soft_fabric fabric;
	int ends[2];
};

static void begin(struct told *told)
{
	CHECK(!pipe2(told->ends, O_NONBLOCK));
	soft_fabric_init(&told->fabric, 1, true);
	CHECK(!soft_notices_open(&told->fabric.notices, &told->fabric.timers, &told->fabric.faults, told->ends[1], "test: "));
}

static void end(struct told *told)
{
	soft_notices_close(&told->fabric.notices);
	soft_fabric_destroy(&told->fabric);
	close(told->ends[0]);
	close(told->ends[1]);
}

/* What was written since the last time. */
static const char *written(struct told *told)
{
	static char text[4096];
	ssize_t length = read(told->ends[0], text, sizeof(text) - 1);

	text[length < 0 ? 0 : length] = '\0';
	return text;
}

static bool pass_a_second(struct told *told)
{
	return soft_timers_advance(&told->fabric.timers, told->fabric.clock.now(&told->fabric.clock) + SOFT_SECOND);
}

static void test_lines(void)
{
	struct told told;

	begin(&told);
	CHECK(!pass_a_second(&told) && !*written(&told));
	for (int packet = 0; packet < 1000; packet++)
		soft_notice(&told.fabric.notices, SOFT_NOTICE_ICRC, packet < 999 ? &ipv6 : &ipv4, 1);
	soft_notice(&told.fabric.notices, SOFT_NOTICE_MALFORMED, &ipv6, 3);
	CHECK(!*written(&told)); /* first it is collected */
	CHECK(pass_a_second(&told));
	CHECK(!strcmp(written(&told), "test: dropped 1000 packets with a wrong ICRC, the last from 192.0.2.9; "
				      "3 packets that are none of RoCE v2, the last from 2001:db8::9\n"));
	CHECK(!pass_a_second(&told) && !*written(&told));
	end(&told);
}

/* A few of what happens by itself are not worth a word, until they are many. */
static void test_thresholds(void)
{
	struct told told;

	begin(&told);
	soft_notice(&told.fabric.notices, SOFT_NOTICE_ICRC, &ipv4, 3);
	soft_notice(&told.fabric.notices, SOFT_NOTICE_NOBODY, &ipv4, 8000);
	CHECK(pass_a_second(&told) && !*written(&told));
	soft_notice(&told.fabric.notices, SOFT_NOTICE_NOBODY, &ipv4, 192);
	CHECK(pass_a_second(&told));
	CHECK(!strcmp(written(&told), "test: dropped 8192 packets to no queue pair, the last from 192.0.2.9\n"));
	soft_notice(&told.fabric.notices, SOFT_NOTICE_ICRC, &ipv4, 1);
	end(&told);
}

/* What was not said in time is said at the end. */
static void test_end(void)
{
	struct told told;

	begin(&told);
	soft_notice(&told.fabric.notices, SOFT_NOTICE_STRANGER, &ipv4, 1);
	soft_notices_say(&told.fabric.notices);
	CHECK(strstr(written(&told), "1 packets to connections with somebody else"));
	soft_notice(&told.fabric.notices, SOFT_NOTICE_MANAGEMENT, &ipv4, 1);
	soft_notices_close(&told.fabric.notices);
	CHECK(strstr(written(&told), "1 false messages of connection management"));
	soft_notice(&told.fabric.notices, SOFT_NOTICE_MANAGEMENT, &ipv4, 1); /* to nobody */
	end(&told);
}

static void test_bound(void)
{
	struct told told;

	begin(&told);
	for (int line = 0; line < 2 * LINES; line++) {
		soft_notice(&told.fabric.notices, SOFT_NOTICE_FLOOD, &ipv4, 1);
		CHECK(pass_a_second(&told) == (line < LINES));
		CHECK(!strchr(written(&told), '\n') == (line >= LINES));
	}
	end(&told);
}

/* Packets that faults have damaged are no news. */
static void test_faults(void)
{
	struct soft_fault fault = {.traffic = SOFT_FAULT_DATA, .action = SOFT_FAULT_CORRUPT, .probability = 1};
	struct told told;

	begin(&told);
	told.fabric.faults.take_time = true;
	CHECK(soft_fault_add(&told.fabric.faults, &fault) >= 0);
	soft_notice(&told.fabric.notices, SOFT_NOTICE_ICRC, &ipv4, 1000);
	CHECK(!pass_a_second(&told) && !*written(&told));
	end(&told);
}

static void test_nobody_reads(void)
{
	struct told told;

	begin(&told);
	while (write(told.ends[1], "x", 1) == 1)
		;
	CHECK(!fcntl(told.ends[1], F_SETFL, 0)); /* whoever writes now, waits */
	soft_notice(&told.fabric.notices, SOFT_NOTICE_FLOOD, &ipv4, 1);
	CHECK(pass_a_second(&told));
	end(&told);
}

int main(void)
{
	test_lines();
	test_thresholds();
	test_end();
	test_bound();
	test_faults();
	test_nobody_reads();
	return 0;
}
