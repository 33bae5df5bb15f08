/* An exit status of main after MPI_Finalize ends no other rank: the others still print their lines.
 *
 * ranks: 3
 * status: 5
 * order: any
 * expected:
 *   0 is late
 *   2 is late
 */
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Finalize();
    if (rank == 1) return 5;
    usleep(300000);
    printf("%d is late\n", rank);
    return 0;
}
