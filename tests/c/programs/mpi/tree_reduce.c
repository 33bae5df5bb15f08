/* Sum and broadcast by hand, along a binary tree, for a number of ranks that is no power of two.
 *
 * ranks: 3
 * expected:
 *   root 0: sum 6 on all: yes
 *   root 1: sum 6 on all: yes
 *   root 2: sum 6 on all: yes
 */
#include <mpi.h>
#include <stdio.h>

static int rank, size;

static int actual(int relative, int root) { return (relative + root) % size; }

static int tree_sum(int value, int root) {
    int me = (rank - root + size) % size, got;
    for (int bit = 1; bit < size; bit *= 2) {
        if (me & bit) {
            MPI_Send(&value, 1, MPI_INT, actual(me - bit, root), bit, MPI_COMM_WORLD);
            break;
        }
        if (me + bit < size) {
            MPI_Recv(&got, 1, MPI_INT, actual(me + bit, root), bit, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            value += got;
        }
    }
    return value; /* the sum, at the root */
}

static int tree_broadcast(int value, int root) {
    int me = (rank - root + size) % size, bit = 1;
    while (bit < size && !(me & bit)) bit *= 2;
    if (me) MPI_Recv(&value, 1, MPI_INT, actual(me - bit, root), 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (bit /= 2; bit > 0; bit /= 2)
        if (me + bit < size) MPI_Send(&value, 1, MPI_INT, actual(me + bit, root), 99, MPI_COMM_WORLD);
    return value;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int root = 0; root < size; root++) {
        int sum = tree_broadcast(tree_sum(rank + 1, root), root), same = sum == size * (size + 1) / 2, all;
        MPI_Reduce(&same, &all, 1, MPI_INT, MPI_LAND, 0, MPI_COMM_WORLD);
        if (rank == 0) printf("root %d: sum %d on all: %s\n", root, sum, all ? "yes" : "no");
    }
    MPI_Finalize();
    return 0;
}
