/* 2 ranks: a gather and a receive are open, and the other rank waits for any of its own.
 * says: 0 is in MPI_Waitany(count=2) and waits for 1 in waitany.c, line 21 (main). 2 of 2 requests are open: MPI_Igather(root=0, comm=rows) in waitany.c, line 19 (main) and MPI_Irecv(source=1, tag=1, comm=rows) in waitany.c, line 17 (main). For MPI_Irecv(source=1, tag=1, comm=rows), 0's inbox holds 1 message that nearly fits: tag is 2, not 1.
 * says: 1 is in MPI_Allgather(sendcount=1, comm=rows) and waits for 0 in waitany.c, line 23 (main).
 */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, index, got[5];
    MPI_Comm rows;
    MPI_Request requests[2];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &rows);
    MPI_Comm_set_name(rows, "rows");
    MPI_Irecv(&got[4], 1, MPI_INT, 1 - rank, 1, rows, &requests[1]);
    if (rank == 0) {
        MPI_Igather(&rank, 1, MPI_INT, got, 1, MPI_INT, 0, rows, &requests[0]);
        /* Only one of two is waited for. */
        MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    } else if (MPI_Send(&rank, 1, MPI_INT, 0, 2, rows) == MPI_SUCCESS) {
        MPI_Allgather(got, 1, MPI_INT, got + 2, 1, MPI_INT, rows);
    }
    MPI_Finalize();
    return 0;
}
