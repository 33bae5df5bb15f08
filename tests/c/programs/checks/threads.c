/* Four threads of each rank exchange messages of 1 byte to 1 MB in all ways that there are, on a
 * common communicator by tags and on one of their own, which also has collective calls, and look at
 * every byte that comes. Its word: how many rounds. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, LARGEST = 1 << 20 };

static const int SIZES[] = {8, 64, 1000, 4096, 16384, 65536, 100000, 262144, LARGEST};
static int rank, size, rounds;
static MPI_Comm own[THREADS];

typedef struct {
    int thread, round, next, last, tag;
    MPI_Comm comm;
    unsigned char *out, *in, *more_out, *more_in;
} Round;

static unsigned hash(unsigned a, unsigned b, unsigned c)
{
    unsigned h = a * 2654435761u ^ b * 2246822519u ^ c * 3266489917u;
    h ^= h >> 15;
    h *= 2654435761u;
    return h ^ h >> 13;
}

/* Bytes of the message that a hash is for: small ones are the more frequent. */
static int length(unsigned seed)
{
    int k = seed % 64;
    int nth = k < 50 ? k % 4 : k < 60 ? 4 + k % 3 : 7 + k % 2;
    return SIZES[nth] - (seed >> 8) % 8;
}

static unsigned char byte(unsigned seed, int i)
{
    return (unsigned char)(seed + i * 7 + (i >> 8));
}

static int fill(unsigned char *at, unsigned seed)
{
    int n = length(seed);
    for (int i = 0; i < n; i++)
        at[i] = byte(seed, i);
    return n;
}

static void same(const Round *r, long found, long wanted, const char *what)
{
    if (found == wanted)
        return;
    fprintf(stderr, "rank %d, thread %d, round %d, from %d: %s is %ld, not %ld\n", rank, r->thread,
            r->round, r->last, what, found, wanted);
    abort();
}

static void check(const Round *r, const unsigned char *at, unsigned seed)
{
    int n = length(seed), i = 0;
    while (i < n && at[i] == byte(seed, i))
        i++;
    same(r, i, n, "the number of bytes that are right");
}

/* Sends the first message without blocking. */
static MPI_Request begin(const Round *r, int n)
{
    MPI_Request request;
    MPI_Isend(r->out, n, MPI_BYTE, r->next, r->tag, r->comm, &request);
    return request;
}

static void receive(const Round *r, MPI_Request *request)
{
    MPI_Irecv(r->in, LARGEST, MPI_BYTE, r->last, r->tag, r->comm, request);
}

static MPI_Status two_at_a_time(const Round *r, int n)
{
    unsigned mine = hash(rank, r->thread, ~r->round), theirs = hash(r->last, r->thread, ~r->round);
    int more = fill(r->more_out, mine), count;
    MPI_Request requests[4];
    MPI_Status statuses[4];
    receive(r, &requests[0]);
    MPI_Irecv(r->more_in, LARGEST, MPI_BYTE, r->last, r->tag, r->comm, &requests[1]);
    requests[2] = begin(r, n);
    MPI_Isend(r->more_out, more, MPI_BYTE, r->next, r->tag, r->comm, &requests[3]);
    MPI_Waitall(4, requests, statuses);
    MPI_Get_count(&statuses[1], MPI_BYTE, &count);
    same(r, count, length(theirs), "the second length");
    check(r, r->more_in, theirs);
    return statuses[0];
}

static MPI_Status probed(const Round *r, int n)
{
    MPI_Request request = begin(r, n);
    MPI_Status status;
    int count;
    MPI_Probe(r->last, r->tag, r->comm, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    MPI_Recv(r->in, count, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, r->comm, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return status;
}

static MPI_Status matched(const Round *r, int n)
{
    MPI_Request request = begin(r, n);
    MPI_Message message;
    MPI_Status status;
    int count;
    MPI_Mprobe(MPI_ANY_SOURCE, r->tag, r->comm, &message, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    MPI_Mrecv(r->in, count, MPI_BYTE, &message, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return status;
}

static MPI_Status synchronous_and_looked_for(const Round *r, int n)
{
    MPI_Request requests[2];
    MPI_Message message;
    MPI_Status status;
    int count, found = 0;
    MPI_Issend(r->out, n, MPI_BYTE, r->next, r->tag, r->comm, &requests[0]);
    while (MPI_Improbe(r->last, r->tag, r->comm, &found, &message, &status), !found)
        sched_yield();
    MPI_Get_count(&status, MPI_BYTE, &count);
    MPI_Imrecv(r->in, count, MPI_BYTE, &message, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    return status;
}

static MPI_Status tested(const Round *r, int n)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int done = 0;
    MPI_Irecv(r->in, LARGEST, MPI_BYTE, MPI_ANY_SOURCE, r->tag, r->comm, &requests[0]);
    requests[1] = begin(r, n);
    while (MPI_Testall(2, requests, &done, statuses), !done)
        sched_yield();
    return statuses[0];
}

/* Small and large calls of the thread's own communicator, or of one that lives as long as they do. */
static void collectives(const Round *r)
{
    enum { MOST = 3000 };
    static const int counts[] = {1, 2, 100, 259, 260, 261, MOST};
    double mine[MOST], all[MOST];
    MPI_Comm comm = own[r->thread];
    int is_new = r->round % 4 == 1;
    if (is_new) MPI_Comm_dup(own[r->thread], &comm);
    for (int i = 0; i < 9; i++) {
        unsigned seed = hash(r->round, r->thread, i);
        int n = counts[seed % 7], root = (seed >> 8) % size, kind = (seed >> 16) % 4;
        long sum = (long)size * (size - 1) / 2 + (long)size * i;
        for (int k = 0; k < n; k++) mine[k] = rank + i + k, all[k] = -1;
        if (kind == 0) {
            MPI_Barrier(comm);
        } else if (kind == 1) {
            MPI_Bcast(mine, n, MPI_DOUBLE, root, comm);
            for (int k = 0; k < n; k++) same(r, mine[k], root + i + k, "what was broadcast");
        } else {
            if (kind == 2) MPI_Reduce(mine, all, n, MPI_DOUBLE, MPI_SUM, root, comm);
            else MPI_Allreduce(mine, all, n, MPI_DOUBLE, MPI_SUM, comm);
            for (int k = 0; k < n && (kind == 3 || rank == root); k++)
                same(r, all[k], sum + (long)size * k, "the sum");
        }
    }
    if (is_new) MPI_Comm_free(&comm);
}

static MPI_Status one_by_one_after_collectives(const Round *r, int n)
{
    MPI_Request requests[2];
    MPI_Status statuses[2], status;
    int which;
    collectives(r);
    receive(r, &requests[0]);
    requests[1] = begin(r, n);
    for (int left = 2; left; left--) {
        MPI_Waitany(2, requests, &which, &status);
        statuses[which] = status;
    }
    return statuses[0];
}

static MPI_Status exchange(const Round *r, int n)
{
    MPI_Request request;
    MPI_Status status;
    switch (r->round % 9) {
    case 0:
        return two_at_a_time(r, n);
    case 1:
        return probed(r, n);
    case 2:
        return matched(r, n);
    case 3:
        return synchronous_and_looked_for(r, n);
    case 4:
        return tested(r, n);
    case 5:
        return one_by_one_after_collectives(r, n);
    case 6:
        MPI_Sendrecv(r->out, n, MPI_BYTE, r->next, r->tag, r->in, LARGEST, MPI_BYTE, r->last,
                     r->tag, r->comm, &status);
        return status;
    case 7:
        receive(r, &request);
        MPI_Send(r->out, n, MPI_BYTE, r->next, r->tag, r->comm);
        MPI_Wait(&request, &status);
        return status;
    default:
        request = begin(r, n);
        MPI_Recv(r->in, LARGEST, MPI_BYTE, r->last, r->tag, r->comm, &status);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        return status;
    }
}

static void *work(void *given)
{
    int thread = (int)(long)given, count;
    unsigned char *memory = malloc(4L * LARGEST);
    for (int i = 0; i < rounds; i++) {
        int step = 1 + i % (size > 1 ? size - 1 : 1), is_own = i % 2;
        Round r = {
            .thread = thread, .round = i,
            .next = (rank + step) % size, .last = (rank + size - step) % size,
            .comm = is_own ? own[thread] : MPI_COMM_WORLD,
            .tag = is_own ? i : thread * 1000000 + i,
            .out = memory, .in = memory + LARGEST,
            .more_out = memory + 2L * LARGEST, .more_in = memory + 3L * LARGEST,
        };
        unsigned theirs = hash(r.last, thread, i);
        MPI_Status status = exchange(&r, fill(r.out, hash(rank, thread, i)));
        MPI_Get_count(&status, MPI_BYTE, &count);
        same(&r, count, length(theirs), "the length");
        same(&r, status.MPI_SOURCE, r.last, "the source");
        same(&r, status.MPI_TAG, r.tag, "the tag");
        check(&r, r.in, theirs);
    }
    free(memory);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int provided;
    rounds = argc > 1 ? atoi(argv[1]) : 1000;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE)
        return 2;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int t = 0; t < THREADS; t++)
        MPI_Comm_dup(MPI_COMM_WORLD, &own[t]);
    for (long t = 0; t < THREADS; t++)
        pthread_create(&threads[t], NULL, work, (void *)t);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    for (int t = 0; t < THREADS; t++)
        MPI_Comm_free(&own[t]);
    MPI_Finalize();
    if (rank == 0)
        puts("all threads are right");
    return 0;
}
