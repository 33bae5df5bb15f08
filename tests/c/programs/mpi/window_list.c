/* A list whose elements lie in all ranks' memory, attached to a dynamic window: each rank appends
 * what it has, one after the other, and the last one walks along it.
 *
 * ranks: 4
 * expected:
 *   0.0 0.1 0.2 1.0 1.1 1.2 2.0 2.1 2.2 3.0 3.1 3.2
 */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>

typedef struct {
    MPI_Aint next; /* 0: the last one */
    int rank;      /* the owner of the next one */
    double value;
} Element;

typedef struct {
    MPI_Aint at;
    int rank;
} Place;

int main(int argc, char **argv)
{
    int rank, size;
    Element elements[4] = {{0, 0, 0}};
    MPI_Win win;
    Place last = {0, 0};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    for (int i = 0; i < 4; i++)
        MPI_Win_attach(win, &elements[i], sizeof(Element));
    MPI_Aint first;
    MPI_Get_address(&elements[3], &first); /* rank 0's: the head, which has no value */
    last.at = first;
    MPI_Bcast(&first, 1, MPI_AINT, 0, MPI_COMM_WORLD);
    if (rank > 0)
        MPI_Recv(&last, sizeof last, MPI_BYTE, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 3; i++) {
        MPI_Aint at;
        elements[i].value = rank + i / 10.;
        MPI_Get_address(&elements[i], &at);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, last.rank, 0, win);
        MPI_Put(&rank, 1, MPI_INT, last.rank, last.at + (MPI_Aint)offsetof(Element, rank), 1,
                MPI_INT, win);
        MPI_Put(&at, 1, MPI_AINT, last.rank, last.at, 1, MPI_AINT, win);
        MPI_Win_unlock(last.rank, win);
        last = (Place){at, rank};
    }
    if (rank < size - 1) {
        MPI_Send(&last, sizeof last, MPI_BYTE, rank + 1, 0, MPI_COMM_WORLD);
    } else {
        Place here = {first, 0};
        const char *before = "";
        MPI_Win_lock_all(0, win);
        for (;;) {
            Element one;
            MPI_Get(&one, sizeof one, MPI_BYTE, here.rank, here.at, sizeof one, MPI_BYTE, win);
            MPI_Win_flush(here.rank, win);
            if (here.at != first) {
                printf("%s%.1f", before, one.value);
                before = " ";
            }
            if (!one.next)
                break;
            here = (Place){one.next, one.rank};
        }
        MPI_Win_unlock_all(win);
        printf("\n");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 4; i++)
        MPI_Win_detach(win, &elements[i]);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
