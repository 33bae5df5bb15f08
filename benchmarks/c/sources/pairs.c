/* Ping-pong of several pairs at once: the time of a message one way when cores are scarce.
 *
 *     pairs SECONDS BYTES...
 *
 * Each rank of the first half plays with one of the second. Rank 0 prints a line of JSON for each
 * size: the mean over all messages of all pairs, since here the rare long waits matter.
 */
#include "measure.h"

static int rank, size;

/* The seconds of `trips` round trips with `other`, measured by the rank that serves. */
static double play(char *data, int bytes, int other, int trips)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < trips; i++) {
        if (rank < size / 2) {
            MPI_Send(data, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD);
            MPI_Recv(data, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(data, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(data, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD);
        }
    }
    return MPI_Wtime() - start;
}

int main(int argc, char *argv[])
{
    enum { FEWEST = 20, MOST = 1000000 };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 3 || size % 2 != 0)
        fail("usage: an even number of processes of: pairs SECONDS BYTES...");
    for (int i = 2; i < argc; i++) {
        int bytes = atoi(argv[i]), other = (rank + size / 2) % size;
        char *data = memory(bytes);
        play(data, bytes, other, FEWEST);
        double wanted = atof(argv[1]) * FEWEST / (play(data, bytes, other, FEWEST) + 1e-9);
        int trips = wanted < FEWEST ? FEWEST : wanted > MOST ? MOST : (int)wanted;
        MPI_Bcast(&trips, 1, MPI_INT, 0, MPI_COMM_WORLD);
        double seconds = play(data, bytes, other, trips), sum;
        seconds = rank < size / 2 ? seconds : 0;
        MPI_Reduce(&seconds, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank == 0)
            printf("{\"what\": \"pairs\", \"bytes\": %d, \"count\": %d, \"mean_us\": %.4f}\n",
                   bytes, trips, sum * 1e6 / (size / 2) / trips / 2);
        fflush(stdout);
        free(data);
    }
    MPI_Finalize();
    return 0;
}
