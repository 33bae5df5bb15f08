/* Cartesian grids: coordinates, neighbours with and without ends, lines of a grid by Cart_sub.
 *
 * ranks: 4
 * expected:
 *   rank 0 at (0, 0): open -/2 -/1, closed 2/2 1/1, line sums 1 2
 *   rank 1 at (0, 1): open -/3 0/-, closed 3/3 0/0, line sums 1 4
 *   rank 2 at (1, 0): open 0/- -/3, closed 0/0 3/3, line sums 5 2
 *   rank 3 at (1, 1): open 1/- 2/-, closed 1/1 2/2, line sums 5 4
 *   a grid of 3 leaves out: 1
 *   rank at (1, -1) of the closed grid: 3
 *   6 in 2 dimensions: 3 x 2, 12 in 3: 3 x 2 x 2
 */
#include <mpi.h>
#include <stdio.h>

static char name(int rank) { return rank == MPI_PROC_NULL ? '-' : '0' + rank; }

int main(int argc, char **argv) {
    int rank, size, side[2] = {2, 2}, no[2] = {0, 0}, yes[2] = {1, 1}, at[2], n[8], sums[2], three = 3, out, all;
    char line[80], lines[4][80];
    MPI_Comm open, closed, lineal[2], few;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Cart_create(MPI_COMM_WORLD, 2, side, no, 0, &open);
    MPI_Cart_create(MPI_COMM_WORLD, 2, side, yes, 0, &closed);
    MPI_Cart_coords(open, rank, 2, at);
    for (int d = 0; d < 2; d++) {
        int remain[2] = {d == 1, d == 0};
        MPI_Cart_shift(open, d, 1, &n[2 * d], &n[2 * d + 1]);
        MPI_Cart_shift(closed, d, 1, &n[4 + 2 * d], &n[4 + 2 * d + 1]);
        MPI_Cart_sub(open, remain, &lineal[d]);
        MPI_Allreduce(&rank, &sums[d], 1, MPI_INT, MPI_SUM, lineal[d]);
        MPI_Comm_free(&lineal[d]);
    }
    sprintf(line, "rank %d at (%d, %d): open %c/%c %c/%c, closed %c/%c %c/%c, line sums %d %d", rank, at[0], at[1],
            name(n[0]), name(n[1]), name(n[2]), name(n[3]), name(n[4]), name(n[5]), name(n[6]), name(n[7]), sums[0], sums[1]);
    MPI_Gather(line, 80, MPI_CHAR, lines, 80, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int r = 0; rank == 0 && r < size; r++) printf("%s\n", lines[r]);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &three, no, 0, &few);
    out = few == MPI_COMM_NULL;
    if (!out) MPI_Comm_free(&few);
    MPI_Reduce(&out, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        int beyond[2] = {1, -1}, there, six[2] = {0, 0}, twelve[3] = {0, 0, 0};
        MPI_Cart_rank(closed, beyond, &there);
        MPI_Dims_create(6, 2, six);
        MPI_Dims_create(12, 3, twelve);
        printf("a grid of 3 leaves out: %d\nrank at (1, -1) of the closed grid: %d\n", all, there);
        printf("6 in 2 dimensions: %d x %d, 12 in 3: %d x %d x %d\n", six[0], six[1], twelve[0], twelve[1], twelve[2]);
    }
    MPI_Comm_free(&open), MPI_Comm_free(&closed);
    MPI_Finalize();
    return 0;
}
