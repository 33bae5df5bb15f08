/* spawner CASE: starts two workers, which are the same program. */
#include "../checks/check.h"
#include <string.h>
#include <unistd.h>

static MPI_Comm spawn(const char *command, char **words, int count, const char *key, const char *value) {
    MPI_Comm both;
    MPI_Info info;
    MPI_Info_create(&info);
    if (key) MPI_Info_set(info, key, value);
    MPI_Comm_spawn(command, words, count, info, 0, MPI_COMM_WORLD, &both, MPI_ERRCODES_IGNORE);
    MPI_Info_free(&info);
    return both;
}

static void work(MPI_Comm parent, const char *what) {
    char folder[1000];
    printf("worker %d of %d in %s\n", rank, size, getcwd(folder, sizeof folder));
    fflush(stdout);
    MPI_Barrier(parent); /* from here on the parent's call has ended */
    if (strcmp(what, "dies") == 0 && rank == 1) abort();
    if (strcmp(what, "lost parent") == 0) MPI_Recv(&rank, 1, MPI_INT, 1, 0, parent, MPI_STATUS_IGNORE);
    MPI_Comm_disconnect(&parent);
}

int main(int argc, char **argv) {
    MPI_Comm both;
    char *words[] = {argv[1], NULL}, *what = argv[1];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&both);
    if (both != MPI_COMM_NULL) {
        work(both, what);
    } else {
        if (strcmp(what, "missing") == 0) both = spawn("./none", MPI_ARGV_NULL, 1, NULL, NULL);
        else if (strcmp(what, "no MPI") == 0) both = spawn("true", MPI_ARGV_NULL, 1, NULL, NULL);
        else if (strcmp(what, "away") == 0) both = spawn(argv[0], words, 1, "host", "mars");
        else if (strcmp(what, "folder") == 0) both = spawn(argv[0], words, 2, "wdir", "/");
        else if (strcmp(what, "many") == 0) both = spawn(argv[0], words, 600, NULL, NULL);
        else if (strcmp(what, "soft") == 0) both = spawn(argv[0], words, 600, "soft", "1:2,590:600");
        else both = spawn(argv[0], words, 2, NULL, NULL);
        MPI_Barrier(both);
        if (strcmp(what, "lost worker") == 0) MPI_Recv(&rank, 1, MPI_INT, 1, 0, both, MPI_STATUS_IGNORE);
        MPI_Comm_disconnect(&both);
        printf("parent %d has gone on\n", rank);
    }
    MPI_Finalize();
    return 0;
}
