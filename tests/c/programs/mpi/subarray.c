/* The quarters of a matrix are dealt out to a 2 x 2 grid as subarrays, and come back as resized ones.
 *
 * ranks: 4
 * expected:
 *   rank 0 got 0 1 2 8 9 10
 *   rank 1 got 4 5 6 12 13 14
 *   rank 2 got 16 17 18 24 25 26
 *   rank 3 got 20 21 22 28 29 30
 *   0 1 2 . 100 101 102 .
 *   3 4 5 . 103 104 105 .
 *   200 201 202 . 300 301 302 .
 *   203 204 205 . 303 304 305 .
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, size, whole[4][8], part[6], all[4][6];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 4) MPI_Abort(MPI_COMM_WORLD, 1);
    int sizes[2] = {4, 8}, parts[2] = {2, 3};
    if (rank == 0) {
        for (int i = 0; i < 32; i++) whole[i / 8][i % 8] = i;
        for (int r = 1; r < size; r++) {
            int starts[2] = {r / 2 * 2, r % 2 * 4};
            MPI_Datatype block;
            MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &block);
            MPI_Type_commit(&block);
            MPI_Send(whole, 1, block, r, 0, MPI_COMM_WORLD);
            MPI_Type_free(&block);
        }
        for (int i = 0; i < 6; i++) part[i] = whole[i / 3][i % 3];
    } else {
        MPI_Recv(part, 6, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Gather(part, 6, MPI_INT, all, 6, MPI_INT, 0, MPI_COMM_WORLD);
    for (int r = 0; rank == 0 && r < size; r++)
        printf("rank %d got %d %d %d %d %d %d\n", r, all[r][0], all[r][1], all[r][2], all[r][3], all[r][4], all[r][5]);
    /* A block whose extent is 4 integers: the next one begins to its right. */
    MPI_Datatype block, step;
    int first[2] = {0, 0}, counts[4] = {1, 1, 1, 1}, starts[4] = {0, 1, 4, 5};
    MPI_Type_create_subarray(2, sizes, parts, first, MPI_ORDER_C, MPI_INT, &block);
    MPI_Type_create_resized(block, 0, 4 * sizeof(int), &step);
    MPI_Type_commit(&step);
    for (int i = 0; i < 32; i++) whole[i / 8][i % 8] = -1;
    for (int i = 0; i < 6; i++) part[i] = 100 * rank + i;
    MPI_Gatherv(part, 6, MPI_INT, whole, counts, starts, step, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < 32; i++) {
        if (whole[i / 8][i % 8] < 0) printf(".");
        else printf("%d", whole[i / 8][i % 8]);
        printf(i % 8 < 7 ? " " : "\n");
    }
    MPI_Type_free(&block), MPI_Type_free(&step);
    MPI_Finalize();
    return 0;
}
