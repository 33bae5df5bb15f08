/* 2 ranks. A message in one communicator, the receive in another.
 * says: 0 is in MPI_Recv(source=1, tag=4, comm=pairs) in other_communicator.c, line 17 (main).
 */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, number = 0;
    MPI_Comm pairs;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &pairs);
    MPI_Comm_set_name(pairs, "pairs");
    if (rank == 0)
        /* rank 1 sends in MPI_COMM_WORLD */
        MPI_Recv(&number, 1, MPI_INT, 1, 4, pairs, MPI_STATUS_IGNORE);
    else
        MPI_Send(&rank, 1, MPI_INT, 0, 4, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
