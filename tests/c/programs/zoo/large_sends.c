/* 2 ranks. Messages that are too large to be buffered cross.
 * title: Deadlock: 0 → 1 → 0
 * says: 0 is in MPI_Send(dest=1, tag=3, count=4000000) and waits for 1 in large_sends.c, line 15 (main).
 */
#include <mpi.h>

static double numbers[2][4000000];

int main(int argc, char **argv)
{
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Send(numbers[0], 4000000, MPI_DOUBLE, 1 - rank, 3, MPI_COMM_WORLD);
    MPI_Recv(numbers[1], 4000000, MPI_DOUBLE, 1 - rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
