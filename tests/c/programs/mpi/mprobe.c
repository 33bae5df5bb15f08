/* A message that was found by Mprobe is nobody else's; Improbe finds nothing twice.
 *
 * ranks: 3
 * expected:
 *   2 doubles from 1, 3 doubles from 2
 *   sums 3 and 6
 *   the handle is gone: yes
 *   nothing is left: yes
 *   from nobody: no message, 0 elements
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rank, count[3], flag;
    double values[3] = {1, 2, 3}, *got[3], sum[3] = {0};
    MPI_Message message[3], nobody;
    MPI_Status status;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank > 0) {
        MPI_Send(values, rank + 1, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD);
    } else {
        for (int i = 0; i < 2; i++) {
            MPI_Message found;
            if (i == 0) MPI_Mprobe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &found, &status);
            else
                for (flag = 0; !flag;) MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &found, &status);
            message[status.MPI_SOURCE] = found;
            MPI_Get_count(&status, MPI_DOUBLE, &count[status.MPI_SOURCE]);
        }
        printf("%d doubles from 1, %d doubles from 2\n", count[1], count[2]);
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
        for (int r = 2; r >= 1; r--) {
            got[r] = malloc(count[r] * sizeof(double));
            if (r == 2) MPI_Mrecv(got[r], count[r], MPI_DOUBLE, &message[r], &status);
            else {
                MPI_Imrecv(got[r], count[r], MPI_DOUBLE, &message[r], &request);
                MPI_Wait(&request, &status);
            }
            for (int i = 0; i < count[r]; i++) sum[r] += got[r][i];
            free(got[r]);
        }
        printf("sums %.0f and %.0f\n", sum[1], sum[2]);
        printf("the handle is gone: %s\n", message[1] == MPI_MESSAGE_NULL ? "yes" : "no");
        printf("nothing is left: %s\n", flag ? "no" : "yes");
        MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &nobody, &status);
        int none = nobody == MPI_MESSAGE_NO_PROC;
        MPI_Mrecv(values, 3, MPI_DOUBLE, &nobody, &status);
        MPI_Get_count(&status, MPI_DOUBLE, &count[0]);
        printf("from nobody: %s message, %d elements\n", none ? "no" : "a", count[0]);
    }
    MPI_Finalize();
    return 0;
}
