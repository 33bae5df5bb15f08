/* 2 ranks. Each waits for a request: of a receive with a wrong tag, and of a send that nobody takes.
 * title: Deadlock: 0 → 1 → 0
 * says: 0 is in MPI_Wait(source=1, tag=7) in wait_for_request.c, line 22 (main).
 * says: 0's inbox holds 1 message that nearly fits: tag is 8, not 7.
 * says: 1 is in MPI_Wait(dest=0, tag=8) and waits for 0 in wait_for_request.c, line 22 (main).
 */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, count = 1 << 20;
    char *bytes = calloc(count, 1);
    MPI_Request request;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        MPI_Irecv(bytes, count, MPI_CHAR, 1, 7, MPI_COMM_WORLD, &request);
    else
        MPI_Isend(bytes, count, MPI_CHAR, 0, 8, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Finalize();
    free(bytes);
    return 0;
}
