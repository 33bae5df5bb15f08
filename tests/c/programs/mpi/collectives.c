/* Every collective with equal parts, from each root, for a small array and for a large one.
 *
 * ranks: 4
 * expected:
 *   wrong with 1 element: 0
 *   wrong with 3 elements: 0
 *   wrong with 20000 elements: 0
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, size;

/* The value of rank `from` at index `i` of its part for rank `to`. */
static int value(int from, int to, int i) { return from * 1000003 + to * 1009 + i; }

static int check(int n) {
    int *out = malloc(size * n * sizeof(int)), *in = malloc(size * n * sizeof(int)), wrong = 0;
    for (int to = 0; to < size; to++)
        for (int i = 0; i < n; i++) out[to * n + i] = value(rank, to, i);
    for (int root = 0; root < size; root++) {
        for (int i = 0; i < n; i++) in[i] = rank == root ? value(root, 0, i) : -1;
        MPI_Bcast(in, n, MPI_INT, root, MPI_COMM_WORLD);
        for (int i = 0; i < n; i++) wrong += in[i] != value(root, 0, i);
        MPI_Scatter(out, n, MPI_INT, in, n, MPI_INT, root, MPI_COMM_WORLD);
        for (int i = 0; i < n; i++) wrong += in[i] != value(root, rank, i);
        MPI_Gather(out, n, MPI_INT, in, n, MPI_INT, root, MPI_COMM_WORLD);
        for (int from = 0; rank == root && from < size; from++)
            for (int i = 0; i < n; i++) wrong += in[from * n + i] != value(from, 0, i);
        MPI_Reduce(out, in, n, MPI_INT, MPI_MAX, root, MPI_COMM_WORLD);
        for (int i = 0; rank == root && i < n; i++) wrong += in[i] != value(size - 1, 0, i);
    }
    MPI_Allgather(out, n, MPI_INT, in, n, MPI_INT, MPI_COMM_WORLD);
    for (int from = 0; from < size; from++)
        for (int i = 0; i < n; i++) wrong += in[from * n + i] != value(from, 0, i);
    MPI_Alltoall(out, n, MPI_INT, in, n, MPI_INT, MPI_COMM_WORLD);
    for (int from = 0; from < size; from++)
        for (int i = 0; i < n; i++) wrong += in[from * n + i] != value(from, rank, i);
    MPI_Allreduce(out, in, n, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++) wrong += in[i] != value(0, 0, i);
    MPI_Reduce_scatter_block(out, in, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++) {
        int sum = 0;
        for (int from = 0; from < size; from++) sum += value(from, rank, i);
        wrong += in[i] != sum;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    free(out), free(in);
    return wrong;
}

int main(int argc, char **argv) {
    const int counts[] = {1, 3, 20000};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 3; i++) {
        int wrong = check(counts[i]), all;
        MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (rank == 0) printf("wrong with %d element%s: %d\n", counts[i], counts[i] > 1 ? "s" : "", all);
    }
    MPI_Finalize();
    return 0;
}
