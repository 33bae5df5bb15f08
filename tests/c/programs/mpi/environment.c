/* A program asks about its environment: clock, host, version, arguments.
 *
 * ranks: 2
 * arguments: alpha beta=2
 * expected:
 *   arguments: alpha beta=2
 *   the clock goes on, by more than its tick: yes
 *   the same host name on both ranks: yes
 *   version 3.0 or newer: yes
 *   addresses differ by 3 doubles: 24
 *   thread level is the wanted one: yes
 *   main thread: yes
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    int rank, provided, level, length, version, minor, main_thread;
    char names[2][MPI_MAX_PROCESSOR_NAME], name[MPI_MAX_PROCESSOR_NAME] = "";
    double start, end, tick, array[4];
    MPI_Aint a, b;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Query_thread(&level);
    MPI_Is_thread_main(&main_thread);
    MPI_Get_processor_name(name, &length);
    MPI_Get_version(&version, &minor);
    tick = MPI_Wtick();
    start = MPI_Wtime();
    do end = MPI_Wtime();
    while (end - start <= tick);
    MPI_Get_address(&array[0], &a);
    MPI_Get_address(&array[3], &b);
    MPI_Gather(name, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, names, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("arguments: %s %s\n", argc == 3 ? argv[1] : "?", argc == 3 ? argv[2] : "?");
        printf("the clock goes on, by more than its tick: %s\n", tick > 0 && tick < 1 ? "yes" : "no");
        int same = (int)strlen(names[0]) == length && length > 0 && strcmp(names[0], names[1]) == 0;
        printf("the same host name on both ranks: %s\n", same ? "yes" : "no");
        printf("version 3.0 or newer: %s\n", version >= 3 ? "yes" : "no");
        printf("addresses differ by 3 doubles: %ld\n", (long)MPI_Aint_diff(b, a));
        printf("thread level is the wanted one: %s\n", provided == MPI_THREAD_FUNNELED && level == provided ? "yes" : "no");
        printf("main thread: %s\n", main_thread ? "yes" : "no");
    }
    MPI_Finalize();
    return 0;
}
