/* Packing as any machine can read it: the most significant byte first, in sizes that the standard
 * fixes, and back.
 *
 * ranks: 1
 * expected:
 *   sizes: char 1, int 4, long 4, double 8, long double 16, complex 16
 *   258 is 0 0 1 2, -2 as a long is 255 255 255 254
 *   1.5 as a long double is 63 255 128
 *   back: 258 -2 1.5 2.5 -0.25, with what is between them left alone: yes
 *   a long that does not fit: refused
 *   another representation: refused
 *   no room: refused
 */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>

struct item {
    int number;
    long more;
    char between;
    long double precise;
    double complex[2];
};

static MPI_Aint size_of(MPI_Datatype type) {
    MPI_Aint size;
    MPI_Pack_external_size("external32", 1, type, &size);
    return size;
}

static const char *word(int code) { return code == MPI_SUCCESS ? "done" : "refused"; }

int main(int argc, char **argv) {
    unsigned char row[100];
    MPI_Aint at = 0;
    MPI_Init(&argc, &argv);
    printf("sizes: char %ld, int %ld, long %ld, double %ld, ", (long)size_of(MPI_CHAR),
           (long)size_of(MPI_INT), (long)size_of(MPI_LONG), (long)size_of(MPI_DOUBLE));
    printf("long double %ld, complex %ld\n", (long)size_of(MPI_LONG_DOUBLE),
           (long)size_of(MPI_C_DOUBLE_COMPLEX));

    struct item out = {258, -2, 'x', 1.5L, {2.5, -0.25}}, in = {0, 0, 'y', 0, {0, 0}};
    int lengths[4] = {1, 1, 1, 1};
    MPI_Aint places[4] = {offsetof(struct item, number), offsetof(struct item, more),
                          offsetof(struct item, precise), offsetof(struct item, complex)};
    MPI_Datatype types[4] = {MPI_INT, MPI_LONG, MPI_LONG_DOUBLE, MPI_C_DOUBLE_COMPLEX}, type;
    MPI_Type_create_struct(4, lengths, places, types, &type);
    MPI_Type_commit(&type);
    MPI_Pack_external("external32", &out, 1, type, row, sizeof row, &at);
    printf("258 is %d %d %d %d, ", row[0], row[1], row[2], row[3]);
    printf("-2 as a long is %d %d %d %d\n", row[4], row[5], row[6], row[7]);
    printf("1.5 as a long double is %d %d %d\n", row[8], row[9], row[10]);
    MPI_Aint end = at;
    at = 0;
    MPI_Unpack_external("external32", row, end, &at, &in, 1, type);
    printf("back: %d %ld %.1Lf %.1f %.2f, ", in.number, in.more, in.precise, in.complex[0],
           in.complex[1]);
    printf("with what is between them left alone: %s\n", in.between == 'y' && at == end ? "yes" : "no");

    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    long large = 1L << 40;
    at = 0;
    printf("a long that does not fit: %s\n",
           word(MPI_Pack_external("external32", &large, 1, MPI_LONG, row, sizeof row, &at)));
    printf("another representation: %s\n",
           word(MPI_Pack_external("native", &large, 1, MPI_LONG, row, sizeof row, &at)));
    printf("no room: %s\n", word(MPI_Pack_external("external32", &out, 1, type, row, 20, &at)));
    MPI_Type_free(&type);
    MPI_Finalize();
    return 0;
}
