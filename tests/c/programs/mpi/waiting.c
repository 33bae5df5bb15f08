/* All ways to wait for one of several requests: Waitany, Waitsome, Testany, Testsome, Testall.
 *
 * ranks: 4
 * expected:
 *   waitany got 1 4 9, then nothing
 *   waitsome got 2 5 10, then nothing
 *   testany got 3 6 11, then nothing
 *   testsome got 4 7 12, then nothing
 *   testall got 5 8 13
 */
#include <mpi.h>
#include <stdio.h>

static int got[4], size;
static MPI_Request requests[4];

static void post(int tag) {
    for (int r = 0; r < size; r++) requests[r] = MPI_REQUEST_NULL;
    for (int r = 1; r < size; r++)
        MPI_Irecv(&got[r], 1, MPI_INT, r, tag, MPI_COMM_WORLD, &requests[r]);
}

static void show(const char *what, int nothing) {
    printf("%s got %d %d %d%s\n", what, got[1], got[2], got[3], nothing == MPI_UNDEFINED ? ", then nothing" : "");
}

int main(int argc, char **argv) {
    int rank, index, count, flag, which[4];
    MPI_Status status, statuses[4];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank > 0) {
        for (int tag = 0; tag < 5; tag++) {
            int value = rank * rank + tag;
            MPI_Send(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
        }
    } else {
        post(0);
        for (int i = 1; i < size; i++) {
            MPI_Waitany(size, requests, &index, &status);
            if (status.MPI_SOURCE != index || requests[index] != MPI_REQUEST_NULL) printf("wrong index %d\n", index);
        }
        MPI_Waitany(size, requests, &index, &status);
        show("waitany", index);
        post(1);
        for (int done = 0; done < size - 1; done += count) {
            MPI_Waitsome(size, requests, &count, which, statuses);
            for (int i = 0; i < count; i++)
                if (statuses[i].MPI_SOURCE != which[i]) printf("wrong index %d\n", which[i]);
        }
        MPI_Waitsome(size, requests, &count, which, statuses);
        show("waitsome", count);
        post(2);
        for (int done = 0; done < size - 1;) {
            MPI_Testany(size, requests, &index, &flag, &status);
            if (flag && status.MPI_SOURCE != index) printf("wrong index %d\n", index);
            done += flag;
        }
        MPI_Testany(size, requests, &index, &flag, &status);
        show("testany", flag ? index : 0);
        post(3);
        for (int done = 0; done < size - 1; done += count) MPI_Testsome(size, requests, &count, which, statuses);
        MPI_Testsome(size, requests, &count, which, statuses);
        show("testsome", count);
        post(4);
        for (flag = 0; !flag;) MPI_Testall(size, requests, &flag, statuses);
        show("testall", 0);
    }
    MPI_Finalize();
    return 0;
}
