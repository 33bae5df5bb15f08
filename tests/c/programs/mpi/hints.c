/* An object returns the hints that it knows, and none that it has ignored.
 *
 * ranks: 2
 * expected:
 *   a duplicate with hints: - true false
 *   its duplicate: - false false
 *   hints set later: - true false
 *   made from a group: - true false
 *   a window: - -
 *   a file: - -
 */
#include <mpi.h>
#include <stdio.h>

static int rank;

static const char *value(MPI_Info info, const char *key) {
    static char values[3][20];
    static int next;
    char *text = values[next++ % 3];
    int flag;
    MPI_Info_get(info, key, 19, text, &flag);
    return flag ? text : "-";
}

static void show(const char *what, MPI_Comm comm) {
    MPI_Info used;
    MPI_Comm_get_info(comm, &used);
    if (rank == 0)
        printf("%s: %s %s %s\n", what, value(used, "no_such_hint"), value(used, "mpi_assert_no_any_tag"),
               value(used, "mpi_assert_no_any_source"));
    MPI_Info_free(&used);
}

static void show_other(const char *what, MPI_Info used) {
    if (rank == 0)
        printf("%s: %s %s\n", what, value(used, "no_such_hint"), value(used, "mpi_assert_no_any_tag"));
    MPI_Info_free(&used);
}

int main(int argc, char **argv) {
    MPI_Comm with, copy, made;
    MPI_Group group;
    MPI_Info info, used;
    MPI_File file;
    MPI_Win window;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Info_create(&info);
    MPI_Info_set(info, "no_such_hint", "true");
    MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &with);
    show("a duplicate with hints", with);
    MPI_Comm_dup(with, &copy);
    show("its duplicate", copy);
    MPI_Comm_set_info(copy, info);
    show("hints set later", copy);
    MPI_Comm_group(with, &group);
    MPI_Comm_create_from_group(group, "hints", info, MPI_ERRORS_ARE_FATAL, &made);
    show("made from a group", made);
    MPI_Win_create(NULL, 0, 1, info, with, &window);
    MPI_Win_get_info(window, &used);
    show_other("a window", used);
    MPI_File_open(MPI_COMM_SELF, "/dev/null", MPI_MODE_RDWR, info, &file);
    MPI_File_get_info(file, &used);
    show_other("a file", used);
    MPI_File_close(&file);
    MPI_Win_free(&window);
    MPI_Group_free(&group);
    MPI_Comm_free(&with), MPI_Comm_free(&copy), MPI_Comm_free(&made);
    MPI_Info_free(&info);
    MPI_Finalize();
    return 0;
}
