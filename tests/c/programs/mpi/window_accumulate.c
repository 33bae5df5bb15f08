/* Accumulating: many operations and datatypes at one place, by all ranks at the same time.
 *
 * ranks: 4
 * expected:
 *   sum 40, product 24, minimum 0, maximum 3, bits 15
 *   complex 24+16i, long double 6.0
 *   the largest is 3.5 of rank 3, the smallest 0.5 of rank 0
 *   a column has 4 0 0 4 0 0 4 0 0
 *   before each sum, in some order: 0 1 2 3
 *   replaced by 7, which was 7 before
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    double value;
    int rank;
} Located;

typedef struct {
    int sum[4], product, minimum, maximum, bits, column[9], ticket, replaced;
    double complex_[2];
    long double longer;
    Located largest, smallest;
} Memory;

#define AT(field) ((MPI_Aint)((char *)&memory.field - (char *)&memory))

int main(int argc, char **argv)
{
    int rank, size;
    Memory memory;
    MPI_Win win;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    memset(&memory, 0, sizeof memory);
    memory.product = 1;
    memory.minimum = 99;
    memory.smallest.value = 99;
    MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    int four[4] = {1, 2, 3, 4}, one = 1, own = rank + 1, bit = 1 << rank;
    MPI_Accumulate(four, 4, MPI_INT, 0, AT(sum), 4, MPI_INT, MPI_SUM, win);
    MPI_Accumulate(&own, 1, MPI_INT, 0, AT(product), 1, MPI_INT, MPI_PROD, win);
    MPI_Accumulate(&rank, 1, MPI_INT, 0, AT(minimum), 1, MPI_INT, MPI_MIN, win);
    MPI_Accumulate(&rank, 1, MPI_INT, 0, AT(maximum), 1, MPI_INT, MPI_MAX, win);
    MPI_Accumulate(&bit, 1, MPI_INT, 0, AT(bits), 1, MPI_INT, MPI_BOR, win);
    double complex_[2] = {6, 4};
    MPI_Accumulate(complex_, 1, MPI_C_DOUBLE_COMPLEX, 0, AT(complex_), 1, MPI_C_DOUBLE_COMPLEX,
                   MPI_SUM, win);
    long double longer = 1.5;
    MPI_Accumulate(&longer, 1, MPI_LONG_DOUBLE, 0, AT(longer), 1, MPI_LONG_DOUBLE, MPI_SUM, win);
    Located located = {rank + .5, rank};
    MPI_Accumulate(&located, 1, MPI_DOUBLE_INT, 0, AT(largest), 1, MPI_DOUBLE_INT, MPI_MAXLOC, win);
    MPI_Accumulate(&located, 1, MPI_DOUBLE_INT, 0, AT(smallest), 1, MPI_DOUBLE_INT, MPI_MINLOC,
                   win);
    MPI_Datatype column;
    MPI_Type_vector(3, 1, 3, MPI_INT, &column);
    MPI_Type_commit(&column);
    int ones[9] = {1, 5, 5, 1, 5, 5, 1, 5, 5};
    MPI_Accumulate(ones, 1, column, 0, AT(column), 1, column, MPI_SUM, win);
    MPI_Win_fence(0, win);
    int ticket, tickets[64] = {0};
    MPI_Get_accumulate(&one, 1, MPI_INT, &ticket, 1, MPI_INT, 0, AT(ticket), 1, MPI_INT, MPI_SUM,
                       win);
    MPI_Win_fence(0, win);
    int seven = 7, before = 0;
    MPI_Accumulate(&seven, 1, MPI_INT, rank, AT(replaced), 1, MPI_INT, MPI_REPLACE, win);
    MPI_Win_fence(0, win);
    MPI_Fetch_and_op(NULL, &before, MPI_INT, (rank + 1) % size, AT(replaced), MPI_NO_OP, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Gather(&ticket, 1, MPI_INT, tickets, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        int *sum = memory.sum, *of = memory.column, seen[64] = {0};
        printf("sum %d, product %d, minimum %d, maximum %d, bits %d\n",
               sum[0] + sum[1] + sum[2] + sum[3], memory.product, memory.minimum, memory.maximum,
               memory.bits);
        printf("complex %g+%gi, long double %.1Lf\n", memory.complex_[0], memory.complex_[1],
               memory.longer);
        printf("the largest is %g of rank %d, the smallest %g of rank %d\n", memory.largest.value,
               memory.largest.rank, memory.smallest.value, memory.smallest.rank);
        printf("a column has %d %d %d %d %d %d %d %d %d\n", of[0], of[1], of[2], of[3], of[4],
               of[5], of[6], of[7], of[8]);
        printf("before each sum, in some order:");
        for (int i = 0; i < size; i++)
            seen[tickets[i]] = 1;
        for (int i = 0; i < size; i++)
            if (seen[i])
                printf(" %d", i);
        printf("\nreplaced by %d, which was %d before\n", memory.replaced, before);
    }
    MPI_Type_free(&column);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
