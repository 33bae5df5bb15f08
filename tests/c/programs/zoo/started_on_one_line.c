/* 2 ranks: a collective is begun in the line that waits for it, with another root.
 * says: 0 is in MPI_Wait() and waits for 1 in started_on_one_line.c, line 16 (main). The request was begun by MPI_Ireduce(op=MPI_SUM, root=0) in started_on_one_line.c, line 16 (main). 1 called MPI_Ireduce(op=MPI_SUM, root=1) in started_on_one_line.c, line 16 (main) in place of that.
 */
#include <mpi.h>

#define SUM(root) (MPI_Ireduce(&rank, &sum, 1, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD, &request), MPI_Wait(&request, MPI_STATUS_IGNORE))

int main(int argc, char **argv)
{
    int rank, sum = 0;
    MPI_Request request;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    /* The ranks do not agree. */
    SUM(rank);
    MPI_Finalize();
    return 0;
}
