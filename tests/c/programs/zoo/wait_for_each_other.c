/* 2 ranks. Requests that nobody meets.
 * title: Deadlock: 0 → 1 → 0
 * says: 0 is in MPI_Waitall(count=2) and waits for 1 in wait_for_each_other.c, line 19 (main).
 * says: 1 is in MPI_Wait(source=0, tag=1) in wait_for_each_other.c, line 22 (main).
 */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, numbers[2];
    MPI_Request requests[2];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        MPI_Irecv(&numbers[0], 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&numbers[1], 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &requests[1]);
        /* both of rank 1 */
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else {
        MPI_Irecv(&numbers[0], 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
