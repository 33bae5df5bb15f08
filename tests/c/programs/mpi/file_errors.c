/* Errors with files: the same class in all processes, given to the file's error handler, or to that of
 * MPI_FILE_NULL if there is no file. Both return the error until the program sets another handler.
 *
 * ranks: 2
 * expected:
 *   no such file: MPI_ERR_NO_SUCH_FILE
 *   no such folder: MPI_ERR_NO_SUCH_FILE
 *   a file for a folder: MPI_ERR_BAD_FILE
 *   it exists: MPI_ERR_FILE_EXISTS
 *   two ways: MPI_ERR_AMODE
 *   nothing to delete: MPI_ERR_NO_SUCH_FILE
 *   a folder to write to: MPI_ERR_BAD_FILE
 *   written where one may only read: MPI_ERR_READ_ONLY
 *   read where one may only write: MPI_ERR_ACCESS
 *   a negative offset: MPI_ERR_ARG
 *   a negative count: MPI_ERR_COUNT
 *   not committed: MPI_ERR_TYPE
 *   a view of other etypes: MPI_ERR_ARG
 *   a view that goes back: MPI_ERR_IO
 *   a view with bytes twice: MPI_ERR_IO
 *   no representation: MPI_ERR_UNSUPPORTED_DATAREP
 *   a part of an etype: MPI_ERR_IO
 *   before the beginning: MPI_ERR_ARG
 *   a sequential file has no offsets: MPI_ERR_UNSUPPORTED_OPERATION
 *   closed twice: MPI_ERR_FILE
 *   handlers were called 3 times: for the file, for none, and as if
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int rank, of_file, of_none;

static void say(const char *what, int code) {
    static const struct {
        int class;
        const char *name;
    } names[] = {{MPI_ERR_NO_SUCH_FILE, "MPI_ERR_NO_SUCH_FILE"},
                 {MPI_ERR_BAD_FILE, "MPI_ERR_BAD_FILE"},
                 {MPI_ERR_FILE_EXISTS, "MPI_ERR_FILE_EXISTS"},
                 {MPI_ERR_AMODE, "MPI_ERR_AMODE"},
                 {MPI_ERR_READ_ONLY, "MPI_ERR_READ_ONLY"},
                 {MPI_ERR_ACCESS, "MPI_ERR_ACCESS"},
                 {MPI_ERR_ARG, "MPI_ERR_ARG"},
                 {MPI_ERR_COUNT, "MPI_ERR_COUNT"},
                 {MPI_ERR_TYPE, "MPI_ERR_TYPE"},
                 {MPI_ERR_IO, "MPI_ERR_IO"},
                 {MPI_ERR_FILE, "MPI_ERR_FILE"},
                 {MPI_ERR_UNSUPPORTED_DATAREP, "MPI_ERR_UNSUPPORTED_DATAREP"},
                 {MPI_ERR_UNSUPPORTED_OPERATION, "MPI_ERR_UNSUPPORTED_OPERATION"}};
    int class, classes[2];
    const char *name = "another class";
    MPI_Error_class(code, &class);
    MPI_Gather(&class, 1, MPI_INT, classes, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank != 0) return;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].class == class) name = names[i].name;
    }
    printf("%s: %s\n", what, classes[0] == classes[1] ? name : "not the same in all processes");
}

static void hear(MPI_File *file, int *code, ...) {
    if (*code == MPI_SUCCESS) return;
    if (*file == MPI_FILE_NULL) of_none++;
    else of_file++;
}

int main(int argc, char **argv) {
    char name[] = "/tmp/file-errors-XXXXXX", below[60], bytes[8] = {0};
    MPI_File file;
    MPI_Status status;
    MPI_Datatype three, type;
    MPI_Errhandler handler;
    const MPI_Comm all = MPI_COMM_WORLD;
    const MPI_Info none = MPI_INFO_NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(all, &rank);
    if (rank == 0) close(mkstemp(name));
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, all);
    snprintf(below, sizeof below, "%s/below", name);

    say("no such file", MPI_File_open(all, "/tmp/no/file", MPI_MODE_RDONLY, none, &file));
    say("no such folder",
        MPI_File_open(all, "/tmp/no/file", MPI_MODE_RDWR | MPI_MODE_CREATE, none, &file));
    say("a file for a folder",
        MPI_File_open(all, below, MPI_MODE_RDWR | MPI_MODE_CREATE, none, &file));
    const int fresh = MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL;
    say("it exists", MPI_File_open(MPI_COMM_SELF, name, fresh, none, &file));
    say("two ways", MPI_File_open(all, name, MPI_MODE_RDONLY | MPI_MODE_WRONLY, none, &file));
    say("nothing to delete", MPI_File_delete("/tmp/no/file", none));
    say("a folder to write to", MPI_File_open(all, "/tmp", MPI_MODE_RDWR, none, &file));

    MPI_File_open(all, name, MPI_MODE_RDONLY, none, &file);
    say("written where one may only read",
        MPI_File_write_at(file, 0, bytes, 1, MPI_CHAR, &status));
    MPI_File_close(&file);
    MPI_File_open(all, name, MPI_MODE_WRONLY, none, &file);
    say("read where one may only write", MPI_File_read_at(file, 0, bytes, 1, MPI_CHAR, &status));
    MPI_File_close(&file);

    MPI_File_open(all, name, MPI_MODE_RDWR, none, &file);
    say("a negative offset", MPI_File_read_at(file, -1, bytes, 1, MPI_CHAR, &status));
    say("a negative count", MPI_File_read_at(file, 0, bytes, -1, MPI_CHAR, &status));
    MPI_Type_contiguous(3, MPI_CHAR, &three);
    say("not committed", MPI_File_read_at(file, 0, bytes, 1, three, &status));
    MPI_Type_commit(&three);
    say("a view of other etypes", MPI_File_set_view(file, 0, MPI_INT, three, "native", none));
    MPI_Type_free(&three);
    int lengths[2] = {2, 2}, back[2] = {4, 0}, twice[2] = {0, 1};
    MPI_Type_indexed(2, lengths, back, MPI_CHAR, &type);
    MPI_Type_commit(&type);
    say("a view that goes back", MPI_File_set_view(file, 0, MPI_CHAR, type, "native", none));
    MPI_Type_free(&type);
    MPI_Type_indexed(2, lengths, twice, MPI_CHAR, &type);
    MPI_Type_commit(&type);
    say("a view with bytes twice", MPI_File_set_view(file, 0, MPI_CHAR, type, "native", none));
    MPI_Type_free(&type);
    say("no representation", MPI_File_set_view(file, 0, MPI_CHAR, MPI_CHAR, "roman", none));
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", none);
    say("a part of an etype", MPI_File_write_at(file, 0, bytes, 3, MPI_CHAR, &status));
    say("before the beginning", MPI_File_seek(file, -1, MPI_SEEK_SET));
    MPI_File_close(&file);
    MPI_File_open(all, name, MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL, none, &file);
    say("a sequential file has no offsets", MPI_File_write_at(file, 0, bytes, 1, MPI_CHAR, &status));

    MPI_File_create_errhandler(hear, &handler);
    MPI_File_set_errhandler(file, handler);
    MPI_File_write(file, bytes, 1, MPI_CHAR, &status);
    MPI_File_call_errhandler(file, MPI_ERR_NO_SPACE);
    MPI_File_close(&file);
    say("closed twice", MPI_File_close(&file));
    MPI_File_set_errhandler(MPI_FILE_NULL, handler);
    MPI_Errhandler_free(&handler);
    MPI_File_delete("/tmp/no/file", none);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    if (rank == 0) {
        printf("handlers were called %d times: for the file, for none, and as if\n", of_file + of_none);
        unlink(name);
    }
    MPI_Finalize();
    return 0;
}
