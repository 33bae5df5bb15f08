/* The ranks of extreme values, and predefined operations on all kinds of integers.
 *
 * ranks: 4
 * expected:
 *   coldest: -3.5 on rank 2
 *   warmest: 21.0 on rank 1
 *   two equal integers: 7 on rank 0, the lower one
 *   and 0 or 15 xor 6
 *   logical and 0 or 1 xor 1
 *   long product 24, short sum -10, unsigned char max 203
 *   float sum 1.0, long double sum 10.0
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    const double temperatures[] = {4.0, 21.0, -3.5, 8.25};
    const int bits[] = {1, 3, 8, 12};
    struct { double value; int rank; } mine, low, high;
    struct { int value, rank; } number, least;
    int rank, b[3], logical[3], yes;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm world = MPI_COMM_WORLD;
    mine.value = temperatures[rank % 4], mine.rank = rank;
    MPI_Reduce(&mine, &low, 1, MPI_DOUBLE_INT, MPI_MINLOC, 0, world);
    MPI_Reduce(&mine, &high, 1, MPI_DOUBLE_INT, MPI_MAXLOC, 0, world);
    number.value = rank < 2 ? 7 : 9, number.rank = rank;
    MPI_Allreduce(&number, &least, 1, MPI_2INT, MPI_MINLOC, world);
    MPI_Reduce(&bits[rank], &b[0], 1, MPI_INT, MPI_BAND, 0, world);
    MPI_Reduce(&bits[rank], &b[1], 1, MPI_INT, MPI_BOR, 0, world);
    MPI_Reduce(&bits[rank], &b[2], 1, MPI_INT, MPI_BXOR, 0, world);
    yes = rank == 1 ? 17 : 0;
    MPI_Reduce(&yes, &logical[0], 1, MPI_INT, MPI_LAND, 0, world);
    MPI_Reduce(&yes, &logical[1], 1, MPI_INT, MPI_LOR, 0, world);
    MPI_Reduce(&yes, &logical[2], 1, MPI_INT, MPI_LXOR, 0, world);
    long l = rank + 1, product;
    short s = -(rank + 1), sum;
    unsigned char c = 200 + rank, most;
    float f = 0.25f, fs;
    long double d = rank + 1, ds;
    MPI_Reduce(&l, &product, 1, MPI_LONG, MPI_PROD, 0, world);
    MPI_Reduce(&s, &sum, 1, MPI_SHORT, MPI_SUM, 0, world);
    MPI_Reduce(&c, &most, 1, MPI_UNSIGNED_CHAR, MPI_MAX, 0, world);
    MPI_Reduce(&f, &fs, 1, MPI_FLOAT, MPI_SUM, 0, world);
    MPI_Reduce(&d, &ds, 1, MPI_LONG_DOUBLE, MPI_SUM, 0, world);
    if (rank == 0) {
        printf("coldest: %.1f on rank %d\nwarmest: %.1f on rank %d\n", low.value, low.rank, high.value, high.rank);
        printf("two equal integers: %d on rank %d, the lower one\n", least.value, least.rank);
        printf("and %d or %d xor %d\n", b[0], b[1], b[2]);
        printf("logical and %d or %d xor %d\n", logical[0], logical[1], logical[2]);
        printf("long product %ld, short sum %d, unsigned char max %d\n", product, sum, most);
        printf("float sum %.1f, long double sum %.1Lf\n", fs, ds);
    }
    MPI_Finalize();
    return 0;
}
