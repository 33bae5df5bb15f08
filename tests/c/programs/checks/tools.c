/* Performance variables around messages that are known: each counts exactly these. Control variables
 * and events do what they say. */
#include "check.h"
#include <string.h>

#define OK(call) CHECK((call) == MPI_SUCCESS)

static MPI_T_pvar_session session;

static int index_of(const char *name, int kind) {
    int index;
    OK(MPI_T_pvar_get_index(name, kind, &index));
    return index;
}

/* A handle that is started, if that is possible. */
static MPI_T_pvar_handle begin(const char *name, int kind, MPI_Comm *comm) {
    MPI_T_pvar_handle handle;
    int count, wanted = 1;
    OK(MPI_T_pvar_handle_alloc(session, index_of(name, kind), comm, &handle, &count));
    if (comm && kind != MPI_T_PVAR_CLASS_LEVEL)
        MPI_Comm_size(*comm, &wanted);
    CHECK(count == wanted);
    if (kind != MPI_T_PVAR_CLASS_LEVEL && kind != MPI_T_PVAR_CLASS_STATE)
        OK(MPI_T_pvar_start(session, handle));
    return handle;
}

static unsigned long long read_one(MPI_T_pvar_handle handle) {
    unsigned long long value = 77;
    OK(MPI_T_pvar_read(session, handle, &value));
    return value;
}

/* Three messages of 100 ints around a ring, and one to oneself. */
static void round_the_ring(MPI_Comm comm) {
    int out[100] = {1}, in[100];
    for (int n = 0; n < 3; n++)
        MPI_Sendrecv(out, 100, MPI_INT, (rank + 1) % size, 1, in, 100, MPI_INT,
                     (rank + size - 1) % size, 1, comm, MPI_STATUS_IGNORE);
    MPI_Sendrecv(out, 1, MPI_INT, rank, 2, in, 1, MPI_INT, rank, 2, comm, MPI_STATUS_IGNORE);
}

static void counters(void) {
    MPI_T_pvar_handle sent = begin("messages_sent", MPI_T_PVAR_CLASS_COUNTER, NULL);
    MPI_T_pvar_handle sent_bytes = begin("bytes_sent", MPI_T_PVAR_CLASS_AGGREGATE, NULL);
    MPI_T_pvar_handle got = begin("messages_received", MPI_T_PVAR_CLASS_COUNTER, NULL);
    MPI_T_pvar_handle got_bytes = begin("bytes_received", MPI_T_PVAR_CLASS_AGGREGATE, NULL);
    unsigned long long value = 1000;
    round_the_ring(MPI_COMM_WORLD);
    CHECK(read_one(sent) == 4 && read_one(sent_bytes) == 1204);
    CHECK(read_one(got) == 4 && read_one(got_bytes) == 1204);
    MPI_Barrier(MPI_COMM_WORLD); /* is no message of the program's */
    CHECK(read_one(sent) == 4 && read_one(got) == 4);
    OK(MPI_T_pvar_stop(session, sent));
    OK(MPI_T_pvar_readreset(session, got, &value));
    CHECK(value == 4 && read_one(got) == 0);
    OK(MPI_T_pvar_write(session, got_bytes, &(unsigned long long){1000}));
    round_the_ring(MPI_COMM_WORLD);
    CHECK(read_one(sent) == 4 && read_one(got) == 4 && read_one(got_bytes) == 2204);
    OK(MPI_T_pvar_start(session, sent));
    round_the_ring(MPI_COMM_WORLD);
    CHECK(read_one(sent) == 8);
    OK(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES));
    CHECK(read_one(sent) == 0 && read_one(got_bytes) == 0);
    OK(MPI_T_pvar_handle_free(session, &sent));
    OK(MPI_T_pvar_handle_free(session, &sent_bytes));
    OK(MPI_T_pvar_handle_free(session, &got));
    OK(MPI_T_pvar_handle_free(session, &got_bytes));
}

static void by_communicator(void) {
    MPI_Comm twin;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    unsigned long long *row = calloc(size, sizeof *row);
    MPI_T_pvar_handle sent = begin("comm_messages_sent", MPI_T_PVAR_CLASS_COUNTER, &twin);
    MPI_T_pvar_handle bytes = begin("comm_bytes_received", MPI_T_PVAR_CLASS_AGGREGATE, &twin);
    round_the_ring(MPI_COMM_WORLD);
    round_the_ring(twin);
    OK(MPI_T_pvar_read(session, sent, row));
    for (int peer = 0; peer < size; peer++)
        CHECK(row[peer] == 3u * (peer == (rank + 1) % size) + (peer == rank));
    OK(MPI_T_pvar_read(session, bytes, row));
    for (int peer = 0; peer < size; peer++)
        CHECK(row[peer] == 1200u * (peer == (rank + size - 1) % size) + 4 * (peer == rank));
    free(row);
    OK(MPI_T_pvar_handle_free(session, &sent));
    OK(MPI_T_pvar_handle_free(session, &bytes));
    MPI_Comm_free(&twin);
}

static void queues(void) {
    MPI_T_pvar_handle queued = begin("unexpected_messages", MPI_T_PVAR_CLASS_LEVEL, NULL);
    MPI_T_pvar_handle bytes = begin("unexpected_bytes", MPI_T_PVAR_CLASS_LEVEL, NULL);
    MPI_Comm world = MPI_COMM_WORLD, self = MPI_COMM_SELF;
    MPI_T_pvar_handle here = begin("comm_unexpected_messages", MPI_T_PVAR_CLASS_LEVEL, &world);
    MPI_T_pvar_handle there = begin("comm_unexpected_messages", MPI_T_PVAR_CLASS_LEVEL, &self);
    MPI_T_pvar_handle posted = begin("posted_receives", MPI_T_PVAR_CLASS_LEVEL, NULL);
    MPI_T_pvar_handle most =
        begin("unexpected_messages_highest", MPI_T_PVAR_CLASS_HIGHWATERMARK, NULL);
    MPI_Request requests[3];
    int numbers[25] = {0};
    for (int n = 0; n < 5; n++)
        MPI_Send(numbers, 25, MPI_INT, (rank + 1) % size, n, MPI_COMM_WORLD);
    MPI_Probe(MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* all have come */
    CHECK(read_one(queued) == 5 && read_one(bytes) == 500);
    CHECK(read_one(here) == 5 && read_one(there) == 0);
    for (int n = 0; n < 5; n++)
        MPI_Recv(numbers, 25, MPI_INT, MPI_ANY_SOURCE, n, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(read_one(queued) == 0 && read_one(bytes) == 0 && read_one(most) == 5);
    for (int n = 0; n < 3; n++)
        MPI_Irecv(numbers + n, 1, MPI_INT, MPI_ANY_SOURCE, n, MPI_COMM_WORLD, &requests[n]);
    CHECK(read_one(posted) == 3);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int n = 0; n < 3; n++)
        MPI_Send(numbers, 1, MPI_INT, (rank + 1) % size, n, MPI_COMM_WORLD);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    CHECK(read_one(posted) == 0);
}

static void waiting(void) {
    MPI_T_pvar_handle time = begin("time_waited", MPI_T_PVAR_CLASS_TIMER, NULL);
    MPI_T_pvar_handle calls = begin("calls_that_waited", MPI_T_PVAR_CLASS_COUNTER, NULL);
    MPI_T_pvar_handle state = begin("state", MPI_T_PVAR_CLASS_STATE, NULL);
    double seconds = -1;
    int now, items, value, length = 64;
    char name[64];
    MPI_T_enum enumeration;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        double start = MPI_Wtime();
        while (MPI_Wtime() < start + 0.05)
            continue;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_T_pvar_read(session, time, &seconds));
    CHECK(rank == 0 ? seconds >= 0 : seconds >= 0.02 && read_one(calls) >= 1);
    OK(MPI_T_pvar_read(session, state, &now));
    OK(MPI_T_pvar_get_info(index_of("state", MPI_T_PVAR_CLASS_STATE), NULL, NULL, NULL, NULL, NULL,
                           &enumeration, NULL, NULL, NULL, NULL, NULL, NULL));
    OK(MPI_T_enum_get_info(enumeration, &items, NULL, NULL));
    CHECK(items > 4 && now < items);
    OK(MPI_T_enum_get_item(enumeration, now, &value, name, &length));
    CHECK(value == now && strcmp(name, "running") == 0);
}

static void collectives(void) {
    MPI_T_pvar_handle begun = begin("collectives_begun", MPI_T_PVAR_CLASS_COUNTER, NULL);
    MPI_T_pvar_handle open = begin("collectives_under_way", MPI_T_PVAR_CLASS_LEVEL, NULL);
    MPI_T_pvar_handle bytes = begin("collective_bytes_sent", MPI_T_PVAR_CLASS_AGGREGATE, NULL);
    MPI_Request request;
    int number = 0, word = 0, sum;
    for (int peer = 1; rank == 0 && peer < size; peer++) /* they have all begun */
        MPI_Recv(&word, 1, MPI_INT, peer, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Ibcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
    if (rank > 0) {
        CHECK(read_one(open) == 1);
        MPI_Send(&word, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(read_one(open) == 0);
    MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(read_one(begun) == 2 && read_one(bytes) % 4 == 0);
}

static void limits(void) {
    MPI_T_cvar_handle handle;
    int index, count;
    unsigned long before, now = 1024;
    MPI_T_pvar_handle offers = begin("unanswered_sends", MPI_T_PVAR_CLASS_LEVEL, NULL);
    static char bytes[4096];
    MPI_Request request;
    OK(MPI_T_cvar_get_index("offer_from", &index));
    OK(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count));
    OK(MPI_T_cvar_read(handle, &before));
    OK(MPI_T_cvar_write(handle, &now));
    MPI_Isend(bytes, 4096, MPI_CHAR, (rank + 1) % size, 1, MPI_COMM_WORLD, &request);
    CHECK(read_one(offers) == 1); /* so it is offered, and its receiver has yet to fetch it */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Recv(bytes, 4096, MPI_CHAR, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(read_one(offers) == 0);
    now = 1ul << 40;
    CHECK(MPI_T_cvar_write(handle, &now) == MPI_T_ERR_INVALID);
    OK(MPI_T_cvar_write(handle, &before));
    OK(MPI_T_cvar_handle_free(&handle));
    OK(MPI_T_cvar_get_index("thread_level", &index));
    OK(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count));
    CHECK(MPI_T_cvar_write(handle, &now) == MPI_T_ERR_CVAR_SET_NEVER);
    OK(MPI_T_cvar_handle_free(&handle));
}

struct seen {
    int events, freed;
    long long time;
};

static void on_event(MPI_T_event_instance event, MPI_T_event_registration registration,
                     MPI_T_cb_safety safety, void *data) {
    struct seen *seen = data;
    struct {
        int rank, tag;
        unsigned long long bytes;
    } all;
    int tag, source;
    MPI_Count time;
    OK(MPI_T_event_copy(event, &all));
    OK(MPI_T_event_read(event, 1, &tag));
    OK(MPI_T_event_get_source(event, &source));
    OK(MPI_T_event_get_timestamp(event, &time));
    CHECK(tag == 10 + seen->events && all.tag == tag && all.bytes == 4 && source == 0);
    CHECK(all.rank == (rank + size - 1) % size && time >= seen->time);
    CHECK(registration != NULL && safety == MPI_T_CB_REQUIRE_NONE);
    seen->time = time;
    seen->events++;
}

static void on_free(MPI_T_event_registration registration, MPI_T_cb_safety safety, void *data) {
    (void)registration, (void)safety;
    ((struct seen *)data)->freed++;
}

static void events(void) {
    MPI_T_event_registration registration;
    MPI_Comm world = MPI_COMM_WORLD;
    struct seen seen = {0, 0, 0};
    int index, number = 0, elements = 3;
    MPI_Datatype types[3];
    MPI_Aint places[3];
    OK(MPI_T_event_get_index("message_received", &index));
    OK(MPI_T_event_get_info(index, NULL, NULL, NULL, types, places, &elements, NULL, NULL, NULL,
                            NULL, NULL));
    CHECK(elements == 3 && types[1] == MPI_INT && places[2] == 8);
    OK(MPI_T_event_handle_alloc(index, &world, MPI_INFO_NULL, &registration));
    OK(MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, &seen,
                                     on_event));
    for (int n = 0; n < 3; n++)
        MPI_Sendrecv(&number, 1, MPI_INT, (rank + 1) % size, 10 + n, &number, 1, MPI_INT,
                     (rank + size - 1) % size, 10 + n, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(seen.events == 3);
    OK(MPI_T_event_handle_free(registration, &seen, on_free));
    CHECK(seen.freed == 1);
    CHECK(MPI_T_event_handle_free(registration, &seen, on_free) == MPI_T_ERR_INVALID_HANDLE);
}

static void misuse(void) {
    MPI_T_pvar_session other;
    MPI_T_pvar_handle handle = begin("messages_sent", MPI_T_PVAR_CLASS_COUNTER, NULL), copy = handle;
    MPI_T_pvar_handle level = begin("unexpected_messages", MPI_T_PVAR_CLASS_LEVEL, NULL);
    MPI_Comm comm = MPI_COMM_NULL;
    unsigned long long value;
    char text[MPI_MAX_ERROR_STRING];
    int count, length;
    OK(MPI_T_pvar_session_create(&other));
    CHECK(MPI_T_pvar_read(other, handle, &value) == MPI_T_ERR_INVALID_HANDLE);
    OK(MPI_T_pvar_session_free(&other));
    CHECK(MPI_T_pvar_read(other, handle, &value) == MPI_T_ERR_INVALID_SESSION);
    CHECK(MPI_T_pvar_read(session, MPI_T_PVAR_ALL_HANDLES, &value) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_pvar_readreset(session, level, &value) == MPI_T_ERR_PVAR_NO_ATOMIC);
    CHECK(MPI_T_pvar_write(session, level, &value) == MPI_T_ERR_PVAR_NO_WRITE);
    CHECK(MPI_T_pvar_start(session, level) == MPI_T_ERR_PVAR_NO_STARTSTOP);
    OK(MPI_T_pvar_handle_free(session, &handle));
    CHECK(MPI_T_pvar_read(session, copy, &value) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_pvar_handle_alloc(session, 9999, NULL, &handle, &count) == MPI_T_ERR_INVALID_INDEX);
    int bound = index_of("comm_messages_sent", MPI_T_PVAR_CLASS_COUNTER);
    CHECK(MPI_T_pvar_handle_alloc(session, bound, &comm, &handle, &count) ==
          MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_pvar_get_num(NULL) == MPI_T_ERR_INVALID);
    OK(MPI_Error_string(MPI_T_ERR_INVALID, text, &length));
    CHECK(strstr(text, "MPI_T_ERR_INVALID") && strstr(text, "MPI_T_pvar_get_num"));
}

int main(int argc, char **argv) {
    int provided;
    MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    OK(MPI_T_pvar_session_create(&session));
    counters();
    by_communicator();
    queues();
    waiting();
    collectives();
    if (size > 1)
        limits();
    events();
    misuse();
    OK(MPI_T_pvar_session_free(&session));
    MPI_Finalize();
    OK(MPI_T_finalize());
    if (rank == 0)
        printf("all tools are right\n");
    return 0;
}
