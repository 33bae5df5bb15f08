/* 2 ranks. Both receive first.
 * title: Deadlock: 0 → 1 → 0
 * says: 0 is in MPI_Recv(source=1, tag=7) in crossed_receives.c, line 15 (main).
 * says: 1 is in MPI_Recv(source=0, tag=7) in crossed_receives.c, line 15 (main).
 */
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank, there, number = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    there = 1 - rank;
    MPI_Recv(&number, 1, MPI_INT, there, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&rank, 1, MPI_INT, there, 7, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
