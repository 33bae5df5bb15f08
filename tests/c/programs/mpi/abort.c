/* One rank gives up with a status of its own while the others wait for a message.
 *
 * ranks: 3
 * status: 7
 * expected:
 *   rank 1 gives up
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, value;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1) {
        printf("rank 1 gives up\n");
        fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, 7);
    }
    MPI_Recv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("rank %d should not come here\n", rank);
    MPI_Finalize();
    return 0;
}
