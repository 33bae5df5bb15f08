/* Calls in a loop without a barrier between, as Intel's benchmarks time them.
 *
 *     loops SECONDS
 *
 * Rank 0 prints a line of JSON for each call and size: microseconds of one call, the mean over the
 * loop and over all ranks. A rank that need not wait for others in a call may be several calls
 * ahead, so this measures what a call costs its caller rather than how long its data takes.
 */
#include "measure.h"

enum { FEWEST = 20, MOST = 200000 };

static int rank, size;
static char *from, *into;
static MPI_Win window;

static void bcast(int bytes) { MPI_Bcast(from, bytes, MPI_BYTE, 0, MPI_COMM_WORLD); }

static void reduce(int bytes)
{
    MPI_Reduce(from, into, bytes / (int)sizeof(float), MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void allreduce(int bytes)
{
    MPI_Allreduce(from, into, bytes / (int)sizeof(float), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void sendrecv(int bytes)
{
    MPI_Sendrecv(from, bytes, MPI_BYTE, (rank + 1) % size, 1, into, bytes, MPI_BYTE,
                 (rank + size - 1) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void gather(int bytes)
{
    MPI_Gather(from, bytes, MPI_BYTE, into, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void scatter(int bytes)
{
    MPI_Scatter(into, bytes, MPI_BYTE, from, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void alltoall(int bytes)
{
    MPI_Alltoall(from, bytes, MPI_BYTE, into, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void barrier(int bytes)
{
    (void)bytes;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void put(int bytes)
{
    if (rank == 0) {
        MPI_Put(from, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, window);
        MPI_Win_flush(1, window);
    }
}

static void accumulate(int bytes)
{
    int count = bytes / (int)sizeof(float);
    if (rank == 0) {
        MPI_Accumulate(from, count, MPI_FLOAT, 1, 0, count, MPI_FLOAT, MPI_SUM, window);
        MPI_Win_flush(1, window);
    }
}

static double play(void (*call)(int), int bytes, int count)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < count; i++)
        call(bytes);
    return MPI_Wtime() - start;
}

static void measured(const char *what, void (*call)(int), int bytes, double seconds, int alone)
{
    play(call, bytes, FEWEST);
    double wanted = seconds * FEWEST / (play(call, bytes, FEWEST) + 1e-9);
    int count = wanted < FEWEST ? FEWEST : wanted > MOST ? MOST : (int)wanted;
    MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
    double took = play(call, bytes, count), sum;
    took = alone && rank ? 0.0 : took;
    MPI_Reduce(&took, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("{\"what\": \"%s\", \"bytes\": %d, \"count\": %d, \"mean_us\": %.4f}\n", what, bytes,
               count, sum * 1e6 / count / (alone ? 1 : size));
    fflush(stdout);
}

int main(int argc, char *argv[])
{
    static const int sizes[] = {8, 1 << 10, 64 << 10, 1 << 20};
    static const struct {
        const char *what;
        void (*call)(int);
        int largest, alone; /* alone: rank 0's time only */
    } calls[] = {
        {"Bcast", bcast, 1 << 20, 0},         {"Reduce", reduce, 1 << 20, 0},
        {"Allreduce", allreduce, 1 << 20, 0}, {"Sendrecv", sendrecv, 1 << 20, 0},
        {"Gather", gather, 64 << 10, 0},      {"Scatter", scatter, 64 << 10, 0},
        {"Alltoall", alltoall, 64 << 10, 0},  {"Put", put, 8, 1},
        {"Accumulate", accumulate, 8, 1},
    };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 2 || size < 2)
        fail("usage: 2 processes or more of: loops SECONDS");
    size_t room = (size_t)size * (64 << 10);
    room = room < 1 << 20 ? 1 << 20 : room;
    from = memory(room);
    into = memory(room);
    for (size_t i = 0; i < room / sizeof(float); i++) /* sums that stay numbers */
        ((float *)from)[i] = 1.0f;
    void *own;
    MPI_Win_allocate(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window);
    MPI_Win_lock_all(0, window);
    measured("Barrier", barrier, 0, atof(argv[1]), 0);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (size_t j = 0; j < sizeof sizes / sizeof *sizes && sizes[j] <= calls[i].largest; j++)
            measured(calls[i].what, calls[i].call, sizes[j], atof(argv[1]), calls[i].alone);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
