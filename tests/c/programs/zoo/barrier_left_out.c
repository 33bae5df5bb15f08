/* 3 ranks: rank 1 leaves the second barrier out, and is at the end.
 *
 * title: Deadlock: 0 → 1 → 0
 * says: 0 is in MPI_Barrier() and waits for 1
 * says: 1 is in MPI_Finalize() and waits for 0
 * says: 2 is in MPI_Barrier() and waits for 1
 */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 1)
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
