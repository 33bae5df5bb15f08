/* 3 ranks: one gives another root to a reduction; the others have gone on when it is missed.
 * says: 0 is in MPI_Reduce(count=1, op=MPI_SUM, root=0) and waits for 2 in roots_differ.c, line 14 (main).
 * says: 2 called MPI_Reduce(op=MPI_SUM, root=1) in roots_differ.c, line 14 (main) in place of that.
 */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, sum = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);

    MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, rank == 2 ? 1 : 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
