/* 2 ranks: a receive that nobody sends to, after collectives; these are not said to have fitted.
 *
 * title: Deadlock: 0 → 1 → 0
 * says: 0 is in MPI_Recv(source=1, tag=0) in receive_after_collective.c, line 19 (main). 1 is in
 */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, number = 0;
    MPI_Comm other;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Bcast(&number, 1, MPI_INT, 1, MPI_COMM_WORLD);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        /* the tag of the first collective is 0, too */
        MPI_Recv(&number, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Comm_free(&other);
    MPI_Finalize();
    return 0;
}
