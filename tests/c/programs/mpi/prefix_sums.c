/* Sums of all that lies before: by Scan and Exscan, and by hand in log2(size) steps.
 *
 * ranks: 4
 * order: any
 * expected:
 *   rank 0: 1 to here 1, before 0, by hand 1, product 1
 *   rank 1: 4 to here 5, before 1, by hand 5, product 2
 *   rank 2: 9 to here 14, before 5, by hand 14, product 6
 *   rank 3: 16 to here 30, before 14, by hand 30, product 24
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, size, here, before = 0, product, got;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int mine = (rank + 1) * (rank + 1), sum = mine;
    MPI_Scan(&mine, &here, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Exscan(&mine, &before, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    product = rank + 1;
    MPI_Scan(MPI_IN_PLACE, &product, 1, MPI_INT, MPI_PROD, MPI_COMM_WORLD);
    for (int step = 1; step < size; step *= 2) {
        MPI_Request request = MPI_REQUEST_NULL;
        int sent = sum;
        if (rank + step < size) MPI_Isend(&sent, 1, MPI_INT, rank + step, step, MPI_COMM_WORLD, &request);
        if (rank >= step) {
            MPI_Recv(&got, 1, MPI_INT, rank - step, step, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            sum += got;
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    printf("rank %d: %d to here %d, before %d, by hand %d, product %d\n", rank, mine, here,
           rank > 0 ? before : 0, sum, product);
    MPI_Finalize();
    return 0;
}
