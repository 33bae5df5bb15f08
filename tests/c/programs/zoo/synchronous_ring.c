/* 3 ranks. All send synchronously, and nobody receives.
 * title: Deadlock: 0 → 1 → 2 → 0
 * says: 0 is in MPI_Ssend(dest=1, tag=0, count=1) and waits for 1 in synchronous_ring.c, line 15 (main).
 * says: 2 is in MPI_Ssend(dest=0, tag=0, count=1) and waits for 0 in synchronous_ring.c, line 15 (main).
 */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, size, number = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Ssend(&rank, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
    MPI_Recv(&number, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
