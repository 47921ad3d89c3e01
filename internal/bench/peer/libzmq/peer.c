// SPDX-License-Identifier: Apache-2.0

// peer is one end of a ZeroMQ connection made with libzmq, for the benchmarks:
//
//	peer ROLE bind|connect ADDRESS PAYLOAD HEADERS SOCKETS
//
// ROLE is push, pull, pub, sub, stalled (a sub that reads nothing), dealer (one
// request after another) or router (which sends each request back). PAYLOAD is
// in bytes, HEADERS a number of headers, SOCKETS how many sockets a reader has.
// It prints the address it is bound to, or the one it dials, as JSON, and then,
// for each line on its standard input, what it has done since it started, until
// that ends.

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

enum { MOST_SOCKETS = 64, MOST_TRIPS = 1 << 21, DISTINCT = 64 };

static const char name[] = "orders.created";
static const char *const lines[] = {
	"content-type: application/json",
	"x-request-id: 4bf92f3577b34da6a3ce929d0e0e4736",
	"partition-key: customer-1234",
};

static atomic_ulong messages;
static int64_t trips[MOST_TRIPS]; // nanoseconds of each round trip
static size_t told;               // of the trips

static void die(const char *what) {
	fprintf(stderr, "peer: %s: %s\n", what, zmq_strerror(errno));
	exit(1);
}

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int order(const void *a, const void *b) {
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

// tell prints what was done, and the round trips since the last time.
static void tell(void) {
	struct rusage u;
	size_t n = atomic_load(&messages);
	size_t last = n < MOST_TRIPS ? n : MOST_TRIPS, count = last > told ? last - told : 0;
	int64_t p50 = 0, p99 = 0;
	if (count > 0) {
		qsort(trips + told, count, sizeof *trips, order);
		p50 = trips[told + count / 2];
		p99 = trips[told + count * 99 / 100];
		told = last;
	}
	getrusage(RUSAGE_SELF, &u);
	long long cpu = (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000LL + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000LL;
	printf("{\"messages\":%zu,\"cpu_ns\":%lld,\"p50_ns\":%lld,\"p99_ns\":%lld}\n", n, cpu, (long long)p50, (long long)p99);
	fflush(stdout);
}

static void *ask(void *unused) {
	char line[64];
	while (fgets(line, sizeof line, stdin) != NULL)
		tell();
	_exit(0); // whatever is queued is of no use to anybody
	return unused;
}

struct content {
	char headers[256];
	size_t size;
	char *payloads[DISTINCT];
	size_t payload;
};

static void fill(struct content *c, size_t payload, int headers) {
	for (int i = 0; i < headers && i < 3; i++) {
		if (i > 0)
			strcat(c->headers, "\n");
		strcat(c->headers, lines[i]);
	}
	c->size = strlen(c->headers);
	c->payload = payload;
	for (int i = 0; i < DISTINCT; i++)
		if ((c->payloads[i] = calloc(1, payload + 1)) == NULL)
			die("allocate payloads");
}

static void frame(void *s, const void *p, size_t n, int flags) {
	while (zmq_send(s, p, n, flags) < 0)
		if (errno != EINTR)
			die("send");
}

static void message(void *s, const struct content *c, unsigned long n) {
	frame(s, name, sizeof name - 1, ZMQ_SNDMORE);
	frame(s, c->headers, c->size, ZMQ_SNDMORE);
	frame(s, c->payloads[n % DISTINCT], c->payload, 0);
}

static void sending(void *s, const struct content *c) {
	for (unsigned long n = 0;; n++) {
		message(s, c, n);
		atomic_store_explicit(&messages, n + 1, memory_order_relaxed);
	}
}

// take takes the frames of one message, false if there is none.
static int take(void *s, int flags) {
	zmq_msg_t m;
	zmq_msg_init(&m);
	for (int more = 1; more; flags = 0) {
		if (zmq_msg_recv(&m, s, flags) < 0) {
			if (errno == EAGAIN)
				return 0;
			if (errno == EINTR)
				continue;
			die("receive");
		}
		more = zmq_msg_more(&m);
	}
	zmq_msg_close(&m);
	return 1;
}

static void reading(void **sockets, int count) {
	zmq_pollitem_t items[MOST_SOCKETS];
	if (count == 1)
		for (;;) {
			take(sockets[0], 0);
			atomic_fetch_add_explicit(&messages, 1, memory_order_relaxed);
		}
	for (int i = 0; i < count; i++)
		items[i] = (zmq_pollitem_t){.socket = sockets[i], .events = ZMQ_POLLIN};
	for (;;) {
		if (zmq_poll(items, count, -1) < 0 && errno != EINTR)
			die("poll");
		for (int i = 0; i < count; i++)
			for (int n = 0; n < 1000 && items[i].revents && take(sockets[i], ZMQ_DONTWAIT); n++)
				atomic_fetch_add_explicit(&messages, 1, memory_order_relaxed);
	}
}

static void asking(void *s, const struct content *c) {
	for (unsigned long n = 0;; n++) {
		int64_t at = now();
		message(s, c, n);
		take(s, 0);
		if (n < MOST_TRIPS)
			trips[n] = now() - at;
		atomic_store(&messages, n + 1);
	}
}

static void answering(void *s) {
	for (;;) {
		zmq_msg_t m;
		int more = 1;
		while (more) {
			zmq_msg_init(&m);
			if (zmq_msg_recv(&m, s, 0) < 0)
				die("receive");
			more = zmq_msg_more(&m);
			if (zmq_msg_send(&m, s, more ? ZMQ_SNDMORE : 0) < 0)
				die("send");
		}
		atomic_fetch_add(&messages, 1);
	}
}

static int type(const char *role) {
	static const struct { const char *role; int type; } types[] = {
		{"push", ZMQ_PUSH}, {"pull", ZMQ_PULL}, {"pub", ZMQ_PUB}, {"sub", ZMQ_SUB},
		{"stalled", ZMQ_SUB}, {"dealer", ZMQ_DEALER}, {"router", ZMQ_ROUTER},
	};
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (strcmp(role, types[i].role) == 0)
			return types[i].type;
	return -1;
}

static void *socket_of(void *ctx, const char *role, int bound, const char *address) {
	int t = type(role);
	void *s = zmq_socket(ctx, t);
	int soon = 10; // milliseconds until it dials again
	int few = 1;   // messages that are taken from the system without being read
	if (s == NULL || zmq_setsockopt(s, ZMQ_RECONNECT_IVL, &soon, sizeof soon) != 0)
		die("make a socket");
	if (strcmp(role, "stalled") == 0 && zmq_setsockopt(s, ZMQ_RCVHWM, &few, sizeof few) != 0)
		die("limit what is taken");
	if (t == ZMQ_SUB && zmq_setsockopt(s, ZMQ_SUBSCRIBE, "", 0) != 0)
		die("subscribe");
	if ((bound ? zmq_bind(s, address) : zmq_connect(s, address)) != 0)
		die(address);
	return s;
}

int main(int argc, char **argv) {
	static struct content c;
	void *sockets[MOST_SOCKETS], *ctx = zmq_ctx_new();
	char address[512];
	size_t size = sizeof address;
	pthread_t asked;
	if (argc != 7 || type(argv[1]) < 0) {
		fprintf(stderr, "usage: peer ROLE bind|connect ADDRESS PAYLOAD HEADERS SOCKETS\n");
		return 2;
	}
	const char *role = argv[1];
	int bound = strcmp(argv[2], "bind") == 0, count = atoi(argv[6]);
	fill(&c, strtoul(argv[4], NULL, 10), atoi(argv[5]));
	if (count < 1 || count > MOST_SOCKETS)
		count = 1;
	for (int i = 0; i < count; i++)
		sockets[i] = socket_of(ctx, role, bound, argv[3]);
	if (zmq_getsockopt(sockets[0], ZMQ_LAST_ENDPOINT, address, &size) != 0)
		die("read the address");
	printf("{\"address\":\"%s\"}\n", address);
	fflush(stdout);
	if (pthread_create(&asked, NULL, ask, NULL) != 0)
		die("start a thread");
	switch (type(role)) {
	case ZMQ_PUSH:
	case ZMQ_PUB:
		sending(sockets[0], &c);
		break;
	case ZMQ_DEALER:
		asking(sockets[0], &c);
		break;
	case ZMQ_ROUTER:
		answering(sockets[0]);
		break;
	default:
		if (strcmp(role, "stalled") != 0)
			reading(sockets, count);
	}
	pthread_join(asked, NULL);
	return 0;
}
