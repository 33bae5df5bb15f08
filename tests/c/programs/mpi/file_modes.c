/* How a file is opened, what it is then, and what of it stays.
 *
 * ranks: 3
 * expected:
 *   made with 3 processes: 0 bytes, amode as given: yes
 *   set to 100 bytes, room for 300: 300, and for 50: 300
 *   a copy of MPI_COMM_WORLD's group: yes
 *   not atomic, then atomic: 0 1
 *   it exists after closing: yes
 *   appended: 300 and 303 bytes
 *   the individual pointer begins at 300
 *   it exists after MPI_MODE_DELETE_ON_CLOSE: no
 *   with info and without: done
 *   handles of Fortran lead back: yes
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int rank;

static const char *yes(int truth) { return truth ? "yes" : "no"; }

static int size_of(MPI_File file) {
    MPI_Offset size;
    MPI_File_get_size(file, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    return (int)size;
}

int main(int argc, char **argv) {
    char name[] = "/tmp/file-modes-XXXXXX/made", byte = 'x';
    const int slash = strlen(name) - 5;
    int amode, comparison, was, is, first, last;
    struct stat about;
    MPI_File file;
    MPI_Group group, world;
    MPI_Info info;
    MPI_Offset position;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        name[slash] = 0;
        if (!mkdtemp(name)) MPI_Abort(MPI_COMM_WORLD, 1);
        name[slash] = '/';
    }
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);

    const int modes = MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "access_style", "read_once,sequential");
    MPI_Info_set(info, "nobody_knows_this", "1");
    MPI_File_open(MPI_COMM_WORLD, name, modes, info, &file);
    MPI_File_get_amode(file, &amode);
    first = size_of(file);
    if (rank == 0) {
        printf("made with 3 processes: %d bytes, amode as given: %s\n", first, yes(amode == modes));
    }
    MPI_File_set_size(file, 100);
    MPI_File_preallocate(file, 300);
    first = size_of(file);
    MPI_File_preallocate(file, 50);
    last = size_of(file);
    if (rank == 0) printf("set to 100 bytes, room for 300: %d, and for 50: %d\n", first, last);
    MPI_File_get_group(file, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_compare(group, world, &comparison);
    MPI_Group_free(&group), MPI_Group_free(&world);
    MPI_File_get_atomicity(file, &was);
    MPI_File_set_atomicity(file, 1);
    MPI_File_get_atomicity(file, &is);
    MPI_File_write_at(file, rank, &byte, 1, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_File_close(&file);
    int exists = stat(name, &about) == 0;
    if (rank == 0) {
        printf("a copy of MPI_COMM_WORLD's group: %s\n", yes(comparison == MPI_IDENT));
        printf("not atomic, then atomic: %d %d\n", was, is);
        printf("it exists after closing: %s\n", yes(exists && file == MPI_FILE_NULL));
    }

    const int append = MPI_MODE_WRONLY | MPI_MODE_APPEND;
    MPI_File_open(MPI_COMM_WORLD, name, append, MPI_INFO_NULL, &file);
    first = size_of(file);
    MPI_File_get_position(file, &position);
    MPI_File_write_shared(file, &byte, 1, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    last = size_of(file);
    MPI_File_close(&file);
    if (rank == 0) {
        printf("appended: %d and %d bytes\n", first, last);
        printf("the individual pointer begins at %d\n", (int)position);
    }

    const int delete = MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_UNIQUE_OPEN;
    MPI_File_open(MPI_COMM_WORLD, name, delete, MPI_INFO_NULL, &file);
    MPI_File_close(&file);
    MPI_Barrier(MPI_COMM_WORLD);
    exists = stat(name, &about) == 0;
    if (rank == 0) printf("it exists after MPI_MODE_DELETE_ON_CLOSE: %s\n", yes(exists));

    /* Each process a file of its own. */
    char own[60];
    snprintf(own, sizeof own, "%s-%d", name, rank);
    MPI_File_open(MPI_COMM_SELF, own, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
    MPI_File_set_info(file, info);
    MPI_Info_free(&info);
    MPI_File_get_info(file, &info);
    if (rank == 0) printf("with info and without: %s\n", info == MPI_INFO_NULL ? "none" : "done");
    MPI_Info_free(&info);
    MPI_File other = MPI_File_f2c(MPI_File_c2f(file));
    if (rank == 0) {
        printf("handles of Fortran lead back: %s\n",
               yes(other == file && MPI_File_f2c(MPI_File_c2f(MPI_FILE_NULL)) == MPI_FILE_NULL));
    }
    MPI_File_close(&file);
    MPI_File_delete(own, MPI_INFO_NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        name[slash] = 0;
        rmdir(name);
    }
    MPI_Finalize();
    return 0;
}
