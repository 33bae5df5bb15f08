/* Views: each process sees its part of a file, in blocks, every so many items, as a tile of a matrix,
 * or of an array that is dealt out; the file has all parts in their places.
 *
 * ranks: 4
 * expected:
 *   blocks: 0 wrong
 *   every fourth item: 0 wrong
 *   tiles of a matrix: 0 wrong
 *   an array that is dealt out: 0 wrong
 *   memory with gaps: 0 wrong
 *   byte offsets of a vector: 12 20 36
 *   seeking to the end: 8, and on: 5
 *   the view is back: displacement 4, native, an extent of 16
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIDE = 8, ALL = SIDE * SIDE };

static int rank, size;
static MPI_File file;

/* How many of the file's first ALL integers are not their own number; rank 0 says it. */
static void look(const char *what) {
    int all[ALL], wrong = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    memset(all, -1, sizeof all);
    MPI_File_read_at_all(file, 0, all, ALL, MPI_INT, MPI_STATUS_IGNORE);
    for (int i = 0; i < ALL; i++) wrong += all[i] != i;
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("%s: %d wrong\n", what, wrong);
    MPI_File_set_size(file, 0);
}

/* Write `count` integers through a view, read them back, and look at the whole file. */
static void through(const char *what, MPI_Offset from, MPI_Datatype type, const int *out, int count) {
    int in[ALL], wrong = 0, got;
    MPI_Status status;
    MPI_Type_commit(&type);
    MPI_File_set_view(file, from, MPI_INT, type, "native", MPI_INFO_NULL);
    MPI_File_write_all(file, out, count, MPI_INT, &status);
    MPI_Get_count(&status, MPI_INT, &got);
    wrong += got != count;
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_all(file, in, count, MPI_INT, &status);
    MPI_Get_count(&status, MPI_INT, &got);
    wrong += got != count || memcmp(in, out, count * sizeof(int)) != 0;
    if (wrong) printf("%s: what was read is not what was written\n", what);
    MPI_Type_free(&type);
    look(what);
}

int main(int argc, char **argv) {
    char name[] = "/tmp/file-views-XXXXXX";
    int out[ALL], each, n;
    MPI_Datatype type;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) close(mkstemp(name));
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    each = ALL / size;

    for (int i = 0; i < each; i++) out[i] = rank * each + i;
    MPI_Type_contiguous(each, MPI_INT, &type);
    through("blocks", rank * each * sizeof(int), type, out, each);

    for (int i = 0; i < each; i++) out[i] = i * size + rank;
    MPI_Type_create_resized(MPI_INT, 0, size * sizeof(int), &type);
    through("every fourth item", rank * sizeof(int), type, out, each);

    int sizes[2] = {SIDE, SIDE}, half[2] = {SIDE / 2, SIDE / 2};
    int start[2] = {rank / 2 * SIDE / 2, rank % 2 * SIDE / 2};
    n = 0;
    for (int row = 0; row < half[0]; row++)
        for (int column = 0; column < half[1]; column++)
            out[n++] = (start[0] + row) * SIDE + start[1] + column;
    MPI_Type_create_subarray(2, sizes, half, start, MPI_ORDER_C, MPI_INT, &type);
    through("tiles of a matrix", 0, type, out, n);

    int grid[2] = {2, 2}, how[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC}, deal[2] = {2, 1};
    n = 0;
    for (int row = 0; row < SIDE; row++)
        for (int column = 0; column < SIDE; column++)
            if (row / 2 % 2 == rank / 2 && column % 2 == rank % 2) out[n++] = row * SIDE + column;
    MPI_Type_create_darray(size, rank, 2, sizes, how, deal, grid, MPI_ORDER_C, MPI_INT, &type);
    through("an array that is dealt out", 0, type, out, n);

    /* The data lies in every other integer of memory, and in every fourth of the file. */
    int gaps[2 * ALL], wrong = 0;
    MPI_Datatype spread;
    for (int i = 0; i < 2 * each; i++) gaps[i] = i % 2 ? -1 : i / 2 * size + rank;
    MPI_Type_vector(each, 1, 2, MPI_INT, &spread);
    MPI_Type_create_resized(MPI_INT, 0, size * sizeof(int), &type);
    MPI_Type_commit(&spread), MPI_Type_commit(&type);
    MPI_File_set_view(file, rank * sizeof(int), MPI_INT, type, "native", MPI_INFO_NULL);
    MPI_File_write_at_all(file, 0, gaps, 1, spread, MPI_STATUS_IGNORE);
    memset(gaps, -1, sizeof gaps);
    MPI_File_read_at_all(file, 0, gaps, 1, spread, MPI_STATUS_IGNORE);
    for (int i = 0; i < 2 * each; i++) wrong += gaps[i] != (i % 2 ? -1 : i / 2 * size + rank);
    if (wrong) printf("what was read into memory with gaps is not what was written\n");
    MPI_Type_free(&spread), MPI_Type_free(&type);
    look("memory with gaps");

    MPI_Offset at[3], end, on;
    MPI_Type_vector(2, 1, 2, MPI_INT, &type);
    MPI_Type_create_resized(type, 0, 16, &spread);
    MPI_Type_commit(&spread);
    MPI_Type_free(&type);
    MPI_File_set_size(file, 16 * sizeof(int));
    MPI_File_set_view(file, 4, MPI_INT, spread, "native", MPI_INFO_NULL);
    MPI_File_get_byte_offset(file, 1, &at[0]);
    MPI_File_get_byte_offset(file, 2, &at[1]);
    MPI_File_get_byte_offset(file, 4, &at[2]);
    MPI_File_seek(file, 0, MPI_SEEK_END);
    MPI_File_get_position(file, &end);
    MPI_File_seek(file, -3, MPI_SEEK_CUR);
    MPI_File_get_position(file, &on);
    if (rank == 0) {
        printf("byte offsets of a vector: %d %d %d\n", (int)at[0], (int)at[1], (int)at[2]);
        printf("seeking to the end: %d, and on: %d\n", (int)end, (int)on);
    }

    MPI_Datatype etype, filetype;
    MPI_Offset from;
    MPI_Aint low, extent;
    char representation[MPI_MAX_DATAREP_STRING];
    MPI_File_get_view(file, &from, &etype, &filetype, representation);
    MPI_Type_get_extent(filetype, &low, &extent);
    if (rank == 0) {
        printf("the view is back: displacement %d, %s, an extent of %d\n", (int)from,
               representation, (int)extent);
    }
    MPI_Type_free(&filetype), MPI_Type_free(&spread);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
