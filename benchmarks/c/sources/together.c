/* Calls of many ranks, more than there are cores: a barrier, a small allreduce, a token's round.
 *
 *     together SECONDS
 *
 * Rank 0 prints a line of JSON for each: the microseconds of one call, and of one hop of the token.
 */
#include "measure.h"

static int rank, size;

static void barrier(void *about)
{
    (void)about;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void allreduce(void *about)
{
    double mine = rank + 1, sum;
    (void)about;
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (sum != size * (size + 1) / 2.0)
        fail("the sum is wrong");
}

static void token(void *about)
{
    int after = (rank + 1) % size, before = (rank + size - 1) % size, hops = 0;
    (void)about;
    if (rank == 0)
        MPI_Send(&hops, 1, MPI_INT, after, 1, MPI_COMM_WORLD);
    MPI_Recv(&hops, 1, MPI_INT, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    hops++;
    if (rank != 0)
        MPI_Send(&hops, 1, MPI_INT, after, 1, MPI_COMM_WORLD);
    else if (hops != size)
        fail("the token has lost its way");
}

int main(int argc, char *argv[])
{
    static struct batches found;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 2 || size < 2)
        fail("usage: 2 processes or more of: together SECONDS");
    struct {
        const char *what;
        void (*call)(void *);
        int bytes, parts;
    } calls[] = {
        {"barrier", barrier, 0, 1},
        {"allreduce 8 B", allreduce, sizeof(double), 1},
        {"token hop", token, sizeof(int), size},
    };
    for (int i = 0; i < 3; i++) {
        measure(calls[i].call, NULL, atof(argv[1]), &found);
        if (rank == 0)
            report(calls[i].what, calls[i].bytes, &found, calls[i].parts);
    }
    MPI_Finalize();
    return 0;
}
