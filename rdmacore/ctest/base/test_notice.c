/* Notices of dropped packets: one line a second at most and a few in all, and writing never waits for a reader. */
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "ctest/support/check.h"
#include "soft/base/fabric.h"

#define LINES 20

static const union ibv_gid ipv4 = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2, [15] = 9}};
static const union ibv_gid ipv6 = {.raw = {0x20, 0x01, 0x0d, 0xb8, [15] = 9}};

struct reported {
	struct soft_fabric fabric;
	int ends[2];
};

static void begin(struct reported *reported)
{
	CHECK(!pipe2(reported->ends, O_NONBLOCK));
	soft_fabric_init(&reported->fabric, 1, true, NULL);
	CHECK(!soft_notices_open(&reported->fabric.notices, &reported->fabric.timers, &reported->fabric.faults, reported->ends[1], "test: "));
}

static void end(struct reported *reported)
{
	soft_notices_close(&reported->fabric.notices);
	soft_fabric_destroy(&reported->fabric);
	close(reported->ends[0]);
	close(reported->ends[1]);
}

/* The lines since the last call. */
static const char *written(struct reported *reported)
{
	static char text[4096];
	ssize_t length = read(reported->ends[0], text, sizeof(text) - 1);

	text[length < 0 ? 0 : length] = '\0';
	return text;
}

static bool pass_a_second(struct reported *reported)
{
	return soft_timers_advance(&reported->fabric.timers, reported->fabric.clock.now(&reported->fabric.clock) + SOFT_SECOND);
}

static void test_lines(void)
{
	struct reported reported;

	begin(&reported);
	CHECK(!pass_a_second(&reported) && !*written(&reported));
	for (int packet = 0; packet < 1000; packet++)
		soft_notice(&reported.fabric.notices, SOFT_NOTICE_ICRC, packet < 999 ? &ipv6 : &ipv4, 1);
	soft_notice(&reported.fabric.notices, SOFT_NOTICE_MALFORMED, &ipv6, 3);
	CHECK(!*written(&reported)); /* first it is collected */
	CHECK(pass_a_second(&reported));
	CHECK(!strcmp(written(&reported), "test: dropped 1000 packets with a wrong ICRC, the last from 192.0.2.9; "
				      "3 packets that are not RoCE v2, the last from 2001:db8::9\n"));
	CHECK(!pass_a_second(&reported) && !*written(&reported));
	end(&reported);
}

/* A few of what happens by itself are not worth a word, until they are many. */
static void test_thresholds(void)
{
	struct reported reported;

	begin(&reported);
	soft_notice(&reported.fabric.notices, SOFT_NOTICE_ICRC, &ipv4, 3);
	soft_notice(&reported.fabric.notices, SOFT_NOTICE_NO_RECEIVER, &ipv4, 8000);
	CHECK(pass_a_second(&reported) && !*written(&reported));
	soft_notice(&reported.fabric.notices, SOFT_NOTICE_NO_RECEIVER, &ipv4, 192);
	CHECK(pass_a_second(&reported));
	CHECK(!strcmp(written(&reported), "test: dropped 8192 packets to unknown queue pairs, the last from 192.0.2.9\n"));
	soft_notice(&reported.fabric.notices, SOFT_NOTICE_ICRC, &ipv4, 1);
	end(&reported);
}

/* Pending notices are written at the end. */
static void test_end(void)
{
	struct reported reported;

	begin(&reported);
	soft_notice(&reported.fabric.notices, SOFT_NOTICE_FOREIGN, &ipv4, 1);
	soft_notices_say(&reported.fabric.notices);
	CHECK(strstr(written(&reported), "1 packets to connections with another peer"));
	soft_notice(&reported.fabric.notices, SOFT_NOTICE_MANAGEMENT, &ipv4, 1);
	soft_notices_close(&reported.fabric.notices);
	CHECK(strstr(written(&reported), "1 forged or malformed messages of connection management"));
	soft_notice(&reported.fabric.notices, SOFT_NOTICE_MANAGEMENT, &ipv4, 1); /* no reader */
	end(&reported);
}

static void test_bound(void)
{
	struct reported reported;

	begin(&reported);
	for (int line = 0; line < 2 * LINES; line++) {
		soft_notice(&reported.fabric.notices, SOFT_NOTICE_FLOOD, &ipv4, 1);
		CHECK(pass_a_second(&reported) == (line < LINES));
		CHECK(!strchr(written(&reported), '\n') == (line >= LINES));
	}
	end(&reported);
}

/* Packets that faults have damaged are not reported. */
static void test_faults(void)
{
	struct soft_fault fault = {.traffic = SOFT_FAULT_DATA, .action = SOFT_FAULT_CORRUPT, .probability = 1};
	struct reported reported;

	begin(&reported);
	reported.fabric.faults.take_time = true;
	CHECK(soft_fault_add(&reported.fabric.faults, &fault) >= 0);
	soft_notice(&reported.fabric.notices, SOFT_NOTICE_ICRC, &ipv4, 1000);
	CHECK(!pass_a_second(&reported) && !*written(&reported));
	end(&reported);
}

static void test_nobody_reads(void)
{
	struct reported reported;

	begin(&reported);
	while (write(reported.ends[1], "x", 1) == 1)
		;
	CHECK(!fcntl(reported.ends[1], F_SETFL, 0)); /* writing waits from now on */
	soft_notice(&reported.fabric.notices, SOFT_NOTICE_FLOOD, &ipv4, 1);
	CHECK(pass_a_second(&reported));
	end(&reported);
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
