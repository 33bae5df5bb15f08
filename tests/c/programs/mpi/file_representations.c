/* Files that any machine can read, and a representation that the program makes itself.
 *
 * ranks: 2
 * expected:
 *   external32: 0 0 1 2 255 255 255 254
 *   a long takes 4 bytes of the file, a double 8
 *   as external32, each its own: 258 -2 259 -3
 *   a short file: 3 of 4
 *   tens: 2 bytes an integer: 25 26
 *   tens, read back: 250 260
 *   of large counts, the same: 250 260
 *   a name that is taken: refused
 *   internal is back: internal
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int rank;

/* An integer of the program is a tenth of it in two bytes of the file. */
static int tenths(void *user, MPI_Count count, void *file, MPI_Offset position) {
    for (MPI_Count i = 0; i < count; i++) ((short *)file)[i] = ((int *)user)[position + i] / 10;
    return MPI_SUCCESS;
}

static int tens(void *user, MPI_Count count, void *file, MPI_Offset position) {
    for (MPI_Count i = 0; i < count; i++) ((int *)user)[position + i] = ((short *)file)[i] * 10;
    return MPI_SUCCESS;
}

static int write_one(void *user, MPI_Datatype type, int count, void *file, MPI_Offset at, void *extra) {
    return type == MPI_INT && extra == &rank ? tenths(user, count, file, at) : MPI_ERR_TYPE;
}

static int read_one(void *user, MPI_Datatype type, int count, void *file, MPI_Offset at, void *extra) {
    return type == MPI_INT && extra == &rank ? tens(user, count, file, at) : MPI_ERR_TYPE;
}

static int write_many(void *user, MPI_Datatype type, MPI_Count count, void *file, MPI_Offset at,
                      void *extra) {
    return type == MPI_INT && extra == &rank ? tenths(user, count, file, at) : MPI_ERR_TYPE;
}

static int read_many(void *user, MPI_Datatype type, MPI_Count count, void *file, MPI_Offset at,
                     void *extra) {
    return type == MPI_INT && extra == &rank ? tens(user, count, file, at) : MPI_ERR_TYPE;
}

static int extent(MPI_Datatype type, MPI_Aint *bytes, void *extra) {
    *bytes = type == MPI_INT ? 2 : 1;
    return extra == &rank ? MPI_SUCCESS : MPI_ERR_ARG;
}

int main(int argc, char **argv) {
    char name[] = "/tmp/file-representations-XXXXXX", representation[MPI_MAX_DATAREP_STRING];
    unsigned char bytes[8];
    long out[2] = {258, -2}, in[4];
    int count, numbers[2];
    MPI_File file;
    MPI_Datatype type, etype, filetype;
    MPI_Aint of_long, of_double;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (rank == 0) close(mkstemp(name));
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);

    /* Blocks of two longs, which are 8 bytes of the file. */
    out[0] += rank, out[1] -= rank;
    MPI_Type_create_subarray(1, (int[]){4}, (int[]){2}, (int[]){2 * rank}, MPI_ORDER_C, MPI_LONG, &type);
    MPI_Type_commit(&type);
    MPI_File_set_view(file, 0, MPI_LONG, type, "external32", MPI_INFO_NULL);
    MPI_File_write_at_all(file, 0, out, 2, MPI_LONG, &status);
    MPI_File_get_type_extent(file, MPI_LONG, &of_long);
    MPI_File_get_type_extent(file, MPI_DOUBLE, &of_double);
    MPI_Type_free(&type);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_set_view(file, 0, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL);
    MPI_File_read_at_all(file, 0, in, 4, MPI_LONG, &status);
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    MPI_File_read_at_all(file, 0, bytes, 8, MPI_BYTE, MPI_STATUS_IGNORE);
    if (rank == 0) {
        printf("external32:");
        for (int i = 0; i < 8; i++) printf(" %d", bytes[i]);
        printf("\na long takes %d bytes of the file, a double %d\n", (int)of_long, (int)of_double);
        printf("as external32, each its own: %ld %ld %ld %ld\n", in[0], in[1], in[2], in[3]);
    }
    MPI_File_set_size(file, 14);
    MPI_File_set_view(file, 0, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL);
    MPI_File_read_at_all(file, 0, in, 4, MPI_LONG, &status);
    MPI_Get_count(&status, MPI_LONG, &count);
    if (rank == 0) printf("a short file: %d of 4\n", count);

    int taken = MPI_Register_datarep("tens", read_one, write_one, extent, &rank);
    MPI_Register_datarep_c("many tens", read_many, write_many, extent, &rank);
    taken |= MPI_Register_datarep("tens", read_one, write_one, extent, &rank) == MPI_SUCCESS;
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "tens", MPI_INFO_NULL);
    numbers[0] = 250 + 10 * rank;
    MPI_File_write_ordered(file, numbers, 1, MPI_INT, &status);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at_all(file, 0, numbers, 2, MPI_INT, &status);
    MPI_File_set_view(file, 0, MPI_SHORT, MPI_SHORT, "native", MPI_INFO_NULL);
    short tenth[2];
    MPI_File_read_at_all(file, 0, tenth, 2, MPI_SHORT, &status);
    if (rank == 0) {
        printf("tens: 2 bytes an integer: %d %d\n", tenth[0], tenth[1]);
        printf("tens, read back: %d %d\n", numbers[0], numbers[1]);
    }
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "many tens", MPI_INFO_NULL);
    numbers[0] = numbers[1] = 0;
    MPI_File_read_all(file, numbers, 2, MPI_INT, &status);
    if (rank == 0) {
        printf("of large counts, the same: %d %d\n", numbers[0], numbers[1]);
        printf("a name that is taken: %s\n", taken ? "taken again" : "refused");
    }
    MPI_Offset at;
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "internal", MPI_INFO_NULL);
    MPI_File_get_view(file, &at, &etype, &filetype, representation);
    if (rank == 0) printf("internal is back: %s\n", representation);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
