/* 2 ranks. The message has another tag than the receive.
 * says: 0 is in MPI_Recv(source=1, tag=7) in wrong_tag.c, line 15 (main).
 * says: 0's inbox holds 1 message that nearly fits: tag is 8, not 7.
 */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, number = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        /* 7 was meant to be 8 */
        MPI_Recv(&number, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Send(&rank, 1, MPI_INT, 0, 8, MPI_COMM_WORLD);
        MPI_Recv(&number, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
