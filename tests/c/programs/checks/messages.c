/* Messages in all modes and sizes: order, wildcards, probes, truncation, cancellation, requests. */
#include "check.h"

#include <string.h>

static const int sizes[] = {0, 1, 8, 1000, 8191, 8192, 40000, 60000, 300000, 5000000};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void fill(char *at, int n, int seed) { for (int i = 0; i < n; i++) at[i] = (char)(seed + i * 7); }
static int same(char *at, int n, int seed)
{
    for (int i = 0; i < n; i++) if (at[i] != (char)(seed + i * 7)) return 0;
    return 1;
}

/* All of a message's ways, to the next process; receives before and after. */
static void modes(void)
{
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    int room = 5000000 + MPI_BSEND_OVERHEAD;
    void *attached = malloc(room), *detached;
    MPI_Buffer_attach(attached, room);
    for (int s = 0; s < SIZES; s++) {
        int n = sizes[s];
        char *out = malloc(n + 1), *in = malloc(n + 1);
        for (int mode = 0; mode < 8; mode++) {
            MPI_Request receive, send;
            MPI_Status status;
            int early = mode % 2, count;
            fill(out, n, rank + s), memset(in, 0, n);
            if (early) MPI_Irecv(in, n, MPI_CHAR, last, mode, MPI_COMM_WORLD, &receive);
            if (early) MPI_Barrier(MPI_COMM_WORLD);
            switch (mode / 2) {
            case 0: MPI_Isend(out, n, MPI_CHAR, next, mode, MPI_COMM_WORLD, &send); break;
            case 1: MPI_Issend(out, n, MPI_CHAR, next, mode, MPI_COMM_WORLD, &send); break;
            case 2: MPI_Ibsend(out, n, MPI_CHAR, next, mode, MPI_COMM_WORLD, &send); break;
            case 3:
                if (early) MPI_Irsend(out, n, MPI_CHAR, next, mode, MPI_COMM_WORLD, &send);
                else MPI_Isend(out, n, MPI_CHAR, next, mode, MPI_COMM_WORLD, &send);
            }
            if (early) MPI_Wait(&receive, &status);
            else MPI_Recv(in, n, MPI_CHAR, MPI_ANY_SOURCE, mode, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_CHAR, &count);
            CHECK(status.MPI_SOURCE == last && status.MPI_TAG == mode && count == n);
            CHECK(same(in, n, last + s));
            MPI_Wait(&send, MPI_STATUS_IGNORE);
            MPI_Barrier(MPI_COMM_WORLD);
        }
        free(out), free(in);
    }
    int had;
    MPI_Buffer_detach(&detached, &had);
    CHECK(detached == attached && had == room);
    free(attached);
}

static void blocking_synchronous(void)
{
    int token = 0, flag;
    MPI_Status status;
    if (size < 2 || rank > 1) return;
    if (rank == 0) {
        MPI_Ssend(&token, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
        token = 9;
        MPI_Send(&token, 1, MPI_INT, 1, 6, MPI_COMM_WORLD);
    } else {
        double until = MPI_Wtime() + 0.05;
        while (MPI_Wtime() < until) {
            MPI_Iprobe(0, 6, MPI_COMM_WORLD, &flag, &status);
            CHECK(!flag); /* it is sent after the first one was received */
        }
        MPI_Recv(&token, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&token, 1, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(token == 9);
    }
}

/* Messages of one pair are received in the order in which they were sent, whatever their size. */
static void order(void)
{
    enum { MANY = 300 };
    if (rank == 0) {
        for (int r = 1; r < size; r++) {
            MPI_Request all[MANY];
            char *out[MANY];
            for (int i = 0; i < MANY; i++) {
                int n = i % 10 == 9 ? 200000 : 100;
                out[i] = malloc(n), fill(out[i], n, i);
                MPI_Isend(out[i], n, MPI_CHAR, r, 3, MPI_COMM_WORLD, &all[i]);
            }
            MPI_Waitall(MANY, all, MPI_STATUSES_IGNORE);
            for (int i = 0; i < MANY; i++) free(out[i]);
        }
    } else {
        char *in = malloc(200000);
        for (int i = 0; i < MANY; i++) {
            MPI_Status status;
            int n = i % 10 == 9 ? 200000 : 100, count;
            MPI_Recv(in, 200000, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_CHAR, &count);
            CHECK(count == n && same(in, n, i));
        }
        free(in);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Large messages both ways at once, contiguous and every other int of them: each process copies
   chunks of its own messages and of its neighbours'. */
static void both_ways(void)
{
    enum { LARGE = 4, MOST = 300000 };
    static const int ints[LARGE] = {MOST, 40000, 100000, 33000};
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    MPI_Datatype other;
    MPI_Type_vector(MOST / 2, 1, 2, MPI_INT, &other), MPI_Type_commit(&other);
    for (int round = 0; round < 3; round++) {
        MPI_Request all[2 * LARGE + 2];
        int *out[LARGE + 1], *in[LARGE + 1], open = 0;
        for (int i = 0; i <= LARGE; i++) {
            int n = i < LARGE ? ints[i] : MOST, count = i < LARGE ? n : 1;
            MPI_Datatype type = i < LARGE ? MPI_INT : other;
            out[i] = malloc(n * sizeof(int)), in[i] = calloc(n, sizeof(int));
            for (int k = 0; k < n; k++) out[i][k] = k + rank + i + round;
            MPI_Irecv(in[i], count, type, last, i, MPI_COMM_WORLD, &all[open++]);
            MPI_Isend(out[i], count, type, next, i, MPI_COMM_WORLD, &all[open++]);
        }
        MPI_Waitall(open, all, MPI_STATUSES_IGNORE);
        for (int i = 0; i <= LARGE; i++) {
            int n = i < LARGE ? ints[i] : MOST, step = i < LARGE ? 1 : 2, wrong = 0;
            for (int k = 0; k < n; k += step) wrong += in[i][k] != k + last + i + round;
            CHECK(!wrong);
            free(in[i]), free(out[i]);
        }
    }
    MPI_Type_free(&other);
}

static void probes(void)
{
    int next = (rank + 1) % size, last = (rank + size - 1) % size, count, flag;
    for (int s = 0; s < SIZES; s++) {
        int n = sizes[s];
        char *out = malloc(n + 1), *in = malloc(n + 1);
        MPI_Request send;
        MPI_Status status;
        MPI_Message message;
        fill(out, n, rank);
        MPI_Isend(out, n, MPI_CHAR, next, s, MPI_COMM_WORLD, &send);
        if (s % 2) {
            MPI_Mprobe(last, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);
            MPI_Get_count(&status, MPI_CHAR, &count);
            CHECK(count == n && status.MPI_TAG == s);
            MPI_Iprobe(last, s, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
            CHECK(!flag);
            MPI_Mrecv(in, n, MPI_CHAR, &message, &status);
            CHECK(message == MPI_MESSAGE_NULL);
        } else {
            MPI_Probe(MPI_ANY_SOURCE, s, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_CHAR, &count);
            CHECK(count == n && status.MPI_SOURCE == last);
            MPI_Recv(in, n, MPI_CHAR, last, s, MPI_COMM_WORLD, &status);
        }
        CHECK(same(in, n, last));
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
        free(out), free(in);
    }
}

static void requests(void)
{
    int in[3] = {-1, -1, -1}, out[3] = {1, 2, 3}, flag, index, done, indices[3];
    MPI_Request all[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status status, statuses[3];
    MPI_Waitall(3, all, MPI_STATUSES_IGNORE);
    MPI_Waitany(3, all, &index, &status);
    CHECK(index == MPI_UNDEFINED);
    for (int i = 0; i < 3; i++) MPI_Irecv(&in[i], 1, MPI_INT, rank, i, MPI_COMM_WORLD, &all[i]);
    MPI_Testany(3, all, &index, &flag, &status);
    CHECK(!flag && index == MPI_UNDEFINED);
    MPI_Send(&out[1], 1, MPI_INT, rank, 1, MPI_COMM_WORLD);
    MPI_Waitany(3, all, &index, &status);
    CHECK(index == 1 && in[1] == 2 && all[1] == MPI_REQUEST_NULL && status.MPI_TAG == 1);
    MPI_Send(&out[2], 1, MPI_INT, rank, 2, MPI_COMM_WORLD);
    MPI_Waitsome(3, all, &done, indices, statuses);
    CHECK(done == 1 && indices[0] == 2 && statuses[0].MPI_SOURCE == rank);
    MPI_Test(&all[0], &flag, &status);
    CHECK(!flag);
    MPI_Cancel(&all[0]), MPI_Wait(&all[0], &status), MPI_Test_cancelled(&status, &flag);
    CHECK(flag && in[0] == -1);
    /* A persistent pair, three times. */
    MPI_Recv_init(&in[0], 1, MPI_INT, rank, 8, MPI_COMM_WORLD, &all[0]);
    MPI_Ssend_init(&out[0], 1, MPI_INT, rank, 8, MPI_COMM_WORLD, &all[1]);
    for (int i = 0; i < 3; i++) {
        out[0] = i;
        MPI_Startall(2, all), MPI_Waitall(2, all, statuses);
        CHECK(in[0] == i && all[0] != MPI_REQUEST_NULL);
    }
    MPI_Request_free(&all[0]), MPI_Request_free(&all[1]);
    /* Nobody. */
    MPI_Recv(in, 3, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &done);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG && done == 0);
}

static void truncation(void)
{
    MPI_Comm own;
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
    int lengths[] = {100, 20000, 1000000};
    for (int i = 0; i < 3; i++) {
        char *out = malloc(lengths[i]), *in = calloc(lengths[i], 1);
        MPI_Request send;
        MPI_Status status;
        int next = (rank + 1) % size, last = (rank + size - 1) % size, count, class;
        fill(out, lengths[i], rank);
        MPI_Isend(out, lengths[i], MPI_CHAR, next, i, own, &send);
        int error = MPI_Recv(in, 60, MPI_CHAR, last, i, own, &status);
        MPI_Error_class(error, &class), MPI_Get_count(&status, MPI_CHAR, &count);
        CHECK(class == MPI_ERR_TRUNCATE && in[60] == 0);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        free(out), free(in);
    }
    MPI_Comm_free(&own);
}

/* A column of a matrix into a row, small and large. */
static void layouts(void)
{
    for (int n = 4; n < 2000; n *= 20) {
        double *matrix = malloc(sizeof(double) * n * n), *row = malloc(sizeof(double) * n * n);
        MPI_Datatype column;
        MPI_Type_vector(n, n / 2, n, MPI_DOUBLE, &column), MPI_Type_commit(&column);
        for (int i = 0; i < n * n; i++) matrix[i] = i, row[i] = -1;
        MPI_Request send;
        MPI_Isend(matrix + 1, 1, column, (rank + 1) % size, 0, MPI_COMM_WORLD, &send);
        MPI_Recv(row, n * (n / 2), MPI_DOUBLE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n / 2; j++) CHECK(row[i * (n / 2) + j] == i * n + j + 1);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        MPI_Isend(row, n * (n / 2), MPI_DOUBLE, (rank + 1) % size, 0, MPI_COMM_WORLD, &send);
        for (int i = 0; i < n * n; i++) matrix[i] = -1;
        MPI_Recv(matrix, 1, column, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                CHECK(matrix[i * n + j] == (j < n / 2 ? i * n + j + 1 : -1));
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Type_free(&column), free(matrix), free(row);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &size);
    modes();
    blocking_synchronous();
    order();
    both_ways();
    probes();
    requests();
    truncation();
    layouts();
    if (rank == 0) puts("all messages are right");
    MPI_Finalize();
    return 0;
}
