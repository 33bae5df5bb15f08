/* The value that main returns after MPI_Finalize is the exit status of the whole run.
 *
 * ranks: 2
 * status: 3
 * expected:
 *   finalized
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, before, after;
    MPI_Initialized(&before);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Finalize();
    MPI_Finalized(&after);
    if (rank == 0) printf("%s\n", !before && after ? "finalized" : "not finalized");
    return rank == 1 ? 3 : 0;
}
