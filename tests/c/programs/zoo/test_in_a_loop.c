/* 2 ranks. A loop of MPI_Test asks for a message whose tag nobody uses; it may end, for all we know.
 * title: It would be a deadlock but for 0's calls of MPI_Test(source=1, tag=7): 0 → 1 → 0
 * says: 0 polls MPI_Test(source=1, tag=7) in test_in_a_loop.c, line 19 (main):
 * says: The request was begun by MPI_Irecv(source=1, tag=7) in test_in_a_loop.c, line
 * says: 0's inbox holds 1 message that nearly fits: tag is 8, not 7.
 */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, number = 0, is_here = 0;
    MPI_Request request;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        MPI_Irecv(&number, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, &request);
        while (!is_here)
            MPI_Test(&request, &is_here, MPI_STATUS_IGNORE);
    } else {
        MPI_Send(&rank, 1, MPI_INT, 0, 8, MPI_COMM_WORLD);
        MPI_Recv(&number, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
