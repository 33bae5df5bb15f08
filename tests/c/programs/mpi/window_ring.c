/* Post, start, complete, wait: a token that grows goes round in windows, and a column into a row.
 *
 * ranks: 4
 * expected:
 *   the token has been to 4 ranks three times: 12
 *   the row is 300 301 302
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size, token = 0, flag;
    MPI_Win win;
    MPI_Group all, before, after;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    MPI_Win_create(&token, sizeof token, sizeof token, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_get_group(win, &all);
    MPI_Group_incl(all, 1, &left, &before);
    MPI_Group_incl(all, 1, &right, &after);
    for (int round = 0; round < 3; round++) {
        if (rank > 0) {
            MPI_Win_post(before, 0, win);
            MPI_Win_wait(win);
        }
        int more = token + 1;
        MPI_Win_start(after, 0, win);
        MPI_Put(&more, 1, MPI_INT, right, 0, 1, MPI_INT, win);
        if (rank > 0)
            MPI_Win_complete(win);
        if (rank == 0) {
            MPI_Win_complete(win);
            MPI_Win_post(before, MPI_MODE_NOSTORE, win);
            do
                MPI_Win_test(win, &flag);
            while (!flag);
        }
    }
    if (rank == 0)
        printf("the token has been to %d ranks three times: %d\n", size, token);
    MPI_Win_free(&win);

    /* Everybody's column becomes the row of the next. */
    int matrix[3][3], row[3] = {0, 0, 0};
    MPI_Datatype column;
    MPI_Type_vector(3, 1, 3, MPI_INT, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            matrix[i][j] = 100 * rank + 10 * j + i;
    MPI_Win_create(row, sizeof row, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_post(before, 0, win);
    MPI_Win_start(after, 0, win);
    MPI_Put(matrix, 1, column, right, 0, 3, MPI_INT, win);
    MPI_Win_complete(win);
    MPI_Win_wait(win);
    if (rank == 0)
        printf("the row is %d %d %d\n", row[0], row[1], row[2]);
    MPI_Win_free(&win);
    MPI_Type_free(&column);
    MPI_Group_free(&all);
    MPI_Group_free(&before);
    MPI_Group_free(&after);
    MPI_Finalize();
    return 0;
}
