/* 2 ranks. One waits for a message, the other at the barrier.
 * title: Deadlock: 0 → 1 → 0
 * says: 0 is in MPI_Recv(source=1, tag=MPI_ANY_TAG) in barrier_and_receive.c, line 15 (main).
 * says: 1 is in MPI_Barrier() and waits for 0 in barrier_and_receive.c, line 17 (main).
 */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, number = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        MPI_Recv(&number, 1, MPI_INT, 1, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
