/* Each rank says hello.
 *
 * ranks: 4
 * order: any
 * expected:
 *   hello from rank 0 of 4
 *   hello from rank 1 of 4
 *   hello from rank 2 of 4
 *   hello from rank 3 of 4
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("hello from rank %d of %d\n", rank, size);
    MPI_Finalize();
    return 0;
}
