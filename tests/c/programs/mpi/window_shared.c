/* Memory that all ranks share: parts one behind the other, read and written without any call.
 *
 * ranks: 4
 * expected:
 *   sizes 8 16 24 32, one behind the other: yes
 *   everybody has added: 4 4 4 4 4 4 4 4 4 4
 *   the first part that is not empty has 5 and unit 1
 *   apart: yes
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size, unit;
    double *own, *all;
    MPI_Aint bytes;
    MPI_Win win;
    MPI_Comm here;

    MPI_Init(&argc, &argv);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    MPI_Comm_rank(here, &rank);
    MPI_Comm_size(here, &size);
    MPI_Win_allocate_shared((rank + 1) * sizeof(double), sizeof(double), MPI_INFO_NULL, here, &own,
                            &win);
    MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &all);
    for (int i = 0; i <= rank; i++)
        own[i] = 0;
    if (rank == 0) {
        int is_behind = 1;
        double *end = all;
        printf("sizes");
        for (int other = 0; other < size; other++) {
            double *its;
            MPI_Win_shared_query(win, other, &bytes, &unit, &its);
            printf(" %d%s", (int)bytes, other < size - 1 ? "" : ", ");
            is_behind = is_behind && its == end && unit == sizeof(double);
            end = its + bytes / sizeof(double);
        }
        printf("one behind the other: %s\n", is_behind ? "yes" : "no");
    }
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    MPI_Barrier(here);
    for (int turn = 0; turn < size; turn++) {
        if (turn == rank)
            for (int i = 0; i < 10; i++)
                all[i] += 1;
        MPI_Win_sync(win);
        MPI_Barrier(here);
        MPI_Win_sync(win);
    }
    if (rank == 0) {
        printf("everybody has added:");
        for (int i = 0; i < 10; i++)
            printf(" %g", all[i]);
        printf("\n");
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);

    char *text;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "alloc_shared_noncontig", "true");
    MPI_Win_allocate_shared(rank == 0 ? 0 : 5, 1, info, here, &text, &win);
    MPI_Info_free(&info);
    MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &text);
    if (rank == 0) {
        char *first, *second;
        printf("the first part that is not empty has %d and unit %d\n", (int)bytes, unit);
        MPI_Win_shared_query(win, 1, &bytes, &unit, &first);
        MPI_Win_shared_query(win, 2, &bytes, &unit, &second);
        printf("apart: %s\n", first == text && second - first > 5 ? "yes" : "no");
    }
    MPI_Win_free(&win);
    MPI_Comm_free(&here);
    MPI_Finalize();
    return 0;
}
