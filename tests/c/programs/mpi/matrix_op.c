/* An operation that does not commute, the product of 2 x 2 matrices, is applied in the ranks' order.
 *
 * ranks: 4
 * expected:
 *   reduce to rank 0: [23 7; 13 4]
 *   reduce to rank 2: the same
 *   allreduce: the same on 4 ranks
 *   scan: right on 4 ranks
 *   exscan: right on 4 ranks
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

typedef struct { int a[2][2]; } Matrix;

static Matrix product(Matrix x, Matrix y) {
    Matrix z;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) z.a[i][j] = x.a[i][0] * y.a[0][j] + x.a[i][1] * y.a[1][j];
    return z;
}

static void multiply(void *in, void *inout, int *length, MPI_Datatype *type) {
    Matrix *left = in, *right = inout;
    (void)type;
    for (int i = 0; i < *length; i++) right[i] = product(left[i], right[i]);
}

static Matrix of(int rank) { return rank % 2 ? (Matrix){{{1, 0}, {rank, 1}}} : (Matrix){{{1, rank + 1}, {0, 1}}}; }

static int same(Matrix x, Matrix y) { return memcmp(&x, &y, sizeof x) == 0; }

int main(int argc, char **argv) {
    int rank, size;
    MPI_Op op;
    MPI_Datatype type;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Type_contiguous(4, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(multiply, 0, &op);
    Matrix mine = of(rank), total, other, before = of(0), here = of(0), all = of(0);
    for (int r = 1; r < size; r++) all = product(all, of(r));
    for (int r = 1; r <= rank; r++) here = product(here, of(r));
    for (int r = 1; r < rank; r++) before = product(before, of(r));
    MPI_Reduce(&mine, &total, 1, type, op, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mine, &other, 1, type, op, 2, MPI_COMM_WORLD);
    int right[4] = {rank != 2 || same(other, all), 0, 0, 0}, sums[4];
    MPI_Allreduce(&mine, &other, 1, type, op, MPI_COMM_WORLD);
    right[1] = same(other, all);
    MPI_Scan(&mine, &other, 1, type, op, MPI_COMM_WORLD);
    right[2] = same(other, here);
    MPI_Exscan(&mine, &other, 1, type, op, MPI_COMM_WORLD);
    right[3] = rank == 0 || same(other, before);
    MPI_Reduce(right, sums, 4, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("reduce to rank 0: [%d %d; %d %d]\n", total.a[0][0], total.a[0][1], total.a[1][0], total.a[1][1]);
        printf("reduce to rank 2: %s\n", sums[0] == size ? "the same" : "different");
        printf("allreduce: the same on %d ranks\n", sums[1]);
        printf("scan: right on %d ranks\nexscan: right on %d ranks\n", sums[2], sums[3]);
    }
    MPI_Op_free(&op);
    MPI_Type_free(&type);
    MPI_Finalize();
    return 0;
}
