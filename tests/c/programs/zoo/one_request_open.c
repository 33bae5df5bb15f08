/* 2 ranks: one of two receives misses its message, which has another tag and communicator.
 * says: 1 of 2 requests is open: MPI_Irecv(source=1, tag=2, comm=rows) in one_request_open.c, line 18 (main).
 * says: For MPI_Irecv(source=1, tag=2, comm=rows), 0's inbox holds 1 message that would fit, but lies in communicator MPI_COMM_WORLD.
 */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, got[2];
    MPI_Comm rows;
    MPI_Request requests[2];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &rows);
    MPI_Comm_set_name(rows, "rows");
    MPI_Irecv(&got[0], 1, MPI_INT, 1 - rank, 1, rows, &requests[0]);
    MPI_Irecv(&got[1], 1, MPI_INT, 1 - rank, 2, rows, &requests[1]);
    MPI_Send(&rank, 1, MPI_INT, 1 - rank, 1, rows);
    MPI_Send(&rank, 1, MPI_INT, 1 - rank, 2, MPI_COMM_WORLD);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Finalize();
    return 0;
}
