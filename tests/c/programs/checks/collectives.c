/* Every collective with many sizes, roots and datatypes, in place and not, also with an operation
   that does not commute; each result is compared with what a loop over the ranks gives. */
#include "check.h"

#include <string.h>

/* x -> a x + b: composing two of these does not commute. */
typedef struct { long a, b; } line;

static void compose(void *in, void *inout, int *count, MPI_Datatype *type)
{
    line *first = in, *then = inout;
    (void)type;
    for (int i = 0; i < *count; i++) {
        line both = {(first[i].a * then[i].a) % 10007, (first[i].b * then[i].a + then[i].b) % 10007};
        then[i] = both;
    }
}

static line line_of(int of, int i) { return (line){of + i % 5 + 1, 3 * of + i % 7}; }

static line composed(int upto, int i)
{
    line all = line_of(0, i);
    for (int of = 1; of <= upto; of++) {
        line next = line_of(of, i);
        compose(&all, &next, &(int){1}, NULL);
        all = next;
    }
    return all;
}

static void reductions(int n)
{
    long *own = malloc((n + 1) * sizeof *own), *all = malloc((n + 1) * sizeof *all);
    for (int root = 0; root < size; root++) {
        for (int i = 0; i < n; i++) own[i] = rank * 1000 + i, all[i] = -1;
        MPI_Reduce(own, all, n, MPI_LONG, MPI_SUM, root, MPI_COMM_WORLD);
        for (int i = 0; i < n; i++)
            CHECK(all[i] == (rank == root ? 1000L * size * (size - 1) / 2 + (long)i * size : -1));
        MPI_Reduce(rank == root ? MPI_IN_PLACE : own, own, n, MPI_LONG, MPI_MAX, root, MPI_COMM_WORLD);
        for (int i = 0; i < n && rank == root; i++) CHECK(own[i] == (size - 1) * 1000 + i);
    }
    for (int place = 0; place < 2; place++) {
        for (int i = 0; i < n; i++) own[i] = all[i] = rank * 1000 + i;
        MPI_Allreduce(place ? MPI_IN_PLACE : own, all, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < n; i++) CHECK(all[i] == 1000L * size * (size - 1) / 2 + (long)i * size);
        for (int i = 0; i < n; i++) own[i] = all[i] = rank + i;
        MPI_Scan(place ? MPI_IN_PLACE : own, all, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < n; i++)
            CHECK(all[i] == (long)rank * (rank + 1) / 2 + (long)i * (rank + 1));
        for (int i = 0; i < n; i++) own[i] = all[i] = rank + i;
        MPI_Exscan(place ? MPI_IN_PLACE : own, all, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < n && rank; i++)
            CHECK(all[i] == (long)rank * (rank - 1) / 2 + (long)i * rank);
    }
    free(own), free(all);
}

static void in_order(int n)
{
    MPI_Datatype type;
    MPI_Op op;
    MPI_Type_contiguous(2, MPI_LONG, &type), MPI_Type_commit(&type);
    MPI_Op_create(compose, 0, &op);
    line *own = malloc((n * size + 1) * sizeof *own), *all = malloc((n * size + 1) * sizeof *all);
    for (int i = 0; i < n * size; i++) own[i] = line_of(rank, i);
    MPI_Allreduce(own, all, n, type, op, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++) {
        line want = composed(size - 1, i);
        CHECK(all[i].a == want.a && all[i].b == want.b);
    }
    for (int root = 0; root < size; root++) {
        MPI_Reduce(own, all, n, type, op, root, MPI_COMM_WORLD);
        for (int i = 0; i < n && rank == root; i++) {
            line want = composed(size - 1, i);
            CHECK(all[i].a == want.a && all[i].b == want.b);
        }
    }
    MPI_Scan(own, all, n, type, op, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++) {
        line want = composed(rank, i);
        CHECK(all[i].a == want.a && all[i].b == want.b);
    }
    MPI_Reduce_scatter_block(own, all, n, type, op, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++) {
        line want = composed(size - 1, rank * n + i);
        CHECK(all[i].a == want.a && all[i].b == want.b);
    }
    MPI_Op_free(&op), MPI_Type_free(&type);
    free(own), free(all);
}

static void moves(int n)
{
    int *one = malloc((n + 1) * sizeof *one), *many = malloc(((size_t)n * size + 1) * sizeof *many);
    int *other = malloc(((size_t)n * size + 1) * sizeof *other);
    for (int root = 0; root < size; root++) {
        for (int i = 0; i < n; i++) one[i] = rank == root ? 7 * root + i : -1;
        MPI_Bcast(one, n, MPI_INT, root, MPI_COMM_WORLD);
        for (int i = 0; i < n; i++) CHECK(one[i] == 7 * root + i);
        for (int i = 0; i < n; i++) one[i] = rank * n + i;
        MPI_Gather(one, n, MPI_INT, many, n, MPI_INT, root, MPI_COMM_WORLD);
        for (int i = 0; i < n * size && rank == root; i++) { CHECK(many[i] == i); many[i] = 3 * i; }
        MPI_Scatter(many, n, MPI_INT, one, n, MPI_INT, root, MPI_COMM_WORLD);
        for (int i = 0; i < n; i++) CHECK(one[i] == 3 * (rank * n + i));
        for (int i = 0; i < n; i++) one[i] = rank * n + i;
        if (rank == root) memcpy(many + rank * n, one, n * sizeof *one);
        MPI_Gather(rank == root ? MPI_IN_PLACE : one, n, MPI_INT, many, n, MPI_INT, root, MPI_COMM_WORLD);
        for (int i = 0; i < n * size && rank == root; i++) CHECK(many[i] == i);
        MPI_Scatter(many, n, MPI_INT, rank == root ? MPI_IN_PLACE : one, n, MPI_INT, root, MPI_COMM_WORLD);
        for (int i = 0; i < n; i++) CHECK(one[i] == rank * n + i);
    }
    for (int place = 0; place < 2; place++) {
        for (int i = 0; i < n; i++) one[i] = many[rank * n + i] = rank * n + i;
        MPI_Allgather(place ? MPI_IN_PLACE : one, n, MPI_INT, many, n, MPI_INT, MPI_COMM_WORLD);
        for (int i = 0; i < n * size; i++) CHECK(many[i] == i);
        for (int i = 0; i < n * size; i++) many[i] = other[i] = rank * 100000 + i;
        MPI_Alltoall(place ? MPI_IN_PLACE : many, n, MPI_INT, other, n, MPI_INT, MPI_COMM_WORLD);
        for (int from = 0; from < size; from++)
            for (int i = 0; i < n; i++) CHECK(other[from * n + i] == from * 100000 + rank * n + i);
    }
    free(one), free(many), free(other);
}

/* Rank r has r + 1 items; between the parts of an array there is a gap. */
static void uneven(void)
{
    int *counts = malloc(size * sizeof *counts), *displs = malloc(size * sizeof *displs), total = 0;
    for (int r = 0; r < size; r++) counts[r] = r + 1, displs[r] = total + r, total += r + 1;
    int room = total + size, *all = malloc(room * sizeof *all), own[64], back[64];
    for (int i = 0; i < 64; i++) own[i] = rank * 100 + i, back[i] = -1;
    for (int root = 0; root < size; root++) {
        for (int i = 0; i < room; i++) all[i] = -1;
        MPI_Gatherv(own, rank + 1, MPI_INT, all, counts, displs, MPI_INT, root, MPI_COMM_WORLD);
        for (int r = 0; r < size && rank == root; r++)
            for (int i = 0; i <= counts[r]; i++)
                if (displs[r] + i < room) CHECK(all[displs[r] + i] == (i < counts[r] ? r * 100 + i : -1));
        MPI_Scatterv(all, counts, displs, MPI_INT, back, rank + 1, MPI_INT, root, MPI_COMM_WORLD);
        for (int i = 0; i < 64; i++) CHECK(back[i] == (i <= rank ? own[i] : -1));
    }
    MPI_Allgatherv(own, rank + 1, MPI_INT, all, counts, displs, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < counts[r]; i++) CHECK(all[displs[r] + i] == r * 100 + i);
    int mine = 0, *sum = malloc(total * sizeof *sum);
    for (int i = 0; i < total; i++) sum[i] = rank + i;
    for (int r = 0; r < rank; r++) mine += counts[r];
    MPI_Reduce_scatter(sum, back, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i <= rank; i++) CHECK(back[i] == size * (size - 1) / 2 + size * (mine + i));
    /* To rank r go r + 1 items from each. */
    int *sent = malloc(room * sizeof *sent), *got = malloc((size * (rank + 1) + 1) * sizeof *got);
    int *from = malloc(size * sizeof *from), *at = malloc(size * sizeof *at);
    for (int r = 0; r < size; r++) {
        from[r] = rank + 1, at[r] = r * (rank + 1);
        for (int i = 0; i <= r; i++) sent[displs[r] + i] = rank * 1000 + r * 10 + i;
    }
    MPI_Alltoallv(sent, counts, displs, MPI_INT, got, from, at, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++)
        for (int i = 0; i <= rank; i++) CHECK(got[at[r] + i] == r * 1000 + rank * 10 + i);
    free(counts), free(displs), free(all), free(sum), free(sent), free(got), free(from), free(at);
}

/* Columns of a matrix: items with gaps between them. */
static void columns(void)
{
    enum { N = 40 };
    static double matrix[N][N], column[N];
    MPI_Datatype vector, type;
    MPI_Type_vector(N, 1, N, MPI_DOUBLE, &vector);
    MPI_Type_create_resized(vector, 0, sizeof(double), &type), MPI_Type_commit(&type);
    for (int i = 0; i < N; i++) column[i] = rank * 100 + i;
    memset(matrix, 0, sizeof matrix);
    MPI_Allgather(column, N, MPI_DOUBLE, matrix, 1, type, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < N; i++) CHECK(matrix[i][r] == r * 100 + i);
    if (rank) memset(matrix, 0, sizeof matrix);
    MPI_Bcast(&matrix[0][1], 1, type, 0, MPI_COMM_WORLD);
    for (int i = 0; i < N; i++) CHECK(matrix[i][1] == (size > 1 ? 100 + i : 0));
    MPI_Type_free(&vector), MPI_Type_free(&type);
}

static void going_on(int n)
{
    int *a = malloc((n + 1) * sizeof *a), *b = malloc((n + 1) * sizeof *b), token = rank;
    for (int i = 0; i < n; i++) a[i] = rank == 0 ? i : -1, b[i] = rank;
    MPI_Request all[3];
    MPI_Ibcast(a, n, MPI_INT, 0, MPI_COMM_WORLD, &all[0]);
    MPI_Iallreduce(MPI_IN_PLACE, b, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &all[1]);
    MPI_Ibarrier(MPI_COMM_WORLD, &all[2]);
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    MPI_Sendrecv_replace(&token, 1, MPI_INT, next, 1, last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(token == last);
    MPI_Waitall(3, all, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++) CHECK(a[i] == i && b[i] == size * (size - 1) / 2);
    MPI_Request again;
    MPI_Bcast_init(a, n, MPI_INT, size - 1, MPI_COMM_WORLD, MPI_INFO_NULL, &again);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < n; i++) a[i] = rank == size - 1 ? round + i : -1;
        MPI_Start(&again), MPI_Wait(&again, MPI_STATUS_IGNORE);
        for (int i = 0; i < n; i++) CHECK(a[i] == round + i);
    }
    MPI_Request_free(&again);
    free(a), free(b);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &size);
    int sizes[] = {0, 1, 3, 100, 5000, 40000, 200000};
    for (int i = 0; i < 7; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        reductions(sizes[i]);
        moves(sizes[i] / 4);
        going_on(sizes[i]);
        in_order(sizes[i] / 50);
    }
    uneven();
    columns();
    if (rank == 0) puts("all collectives are right");
    MPI_Finalize();
    return 0;
}
