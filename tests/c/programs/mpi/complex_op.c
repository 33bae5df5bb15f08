/* A user's operation on complex numbers: the product of all, element by element.
 *
 * ranks: 4
 * expected:
 *   (1+0i)(1+1i)(1+2i)(1+3i) = -10+0i
 *   (1+1i)^4 = -4+0i
 *   C's own complex type: 4+6i
 */
#include <complex.h>
#include <mpi.h>
#include <stdio.h>

typedef struct { double re, im; } Complex;

static void multiply(void *in, void *inout, int *length, MPI_Datatype *type) {
    Complex *a = in, *b = inout;
    (void)type;
    for (int i = 0; i < *length; i++) {
        Complex product = {a[i].re * b[i].re - a[i].im * b[i].im, a[i].re * b[i].im + a[i].im * b[i].re};
        b[i] = product;
    }
}

int main(int argc, char **argv) {
    int rank, commutes;
    MPI_Op op;
    MPI_Datatype type;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Type_contiguous(2, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(multiply, 1, &op);
    MPI_Op_commutative(op, &commutes);
    if (!commutes) MPI_Abort(MPI_COMM_WORLD, 1);
    Complex mine[2] = {{1, rank}, {1, 1}}, all[2];
    MPI_Reduce(mine, all, 2, type, op, 0, MPI_COMM_WORLD);
    double complex z = 1 + rank * I, sum;
    MPI_Reduce(&z, &sum, 1, MPI_C_DOUBLE_COMPLEX, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("(1+0i)(1+1i)(1+2i)(1+3i) = %.0f%+.0fi\n", all[0].re, all[0].im);
        printf("(1+1i)^4 = %.0f%+.0fi\n", all[1].re, all[1].im);
        printf("C's own complex type: %.0f%+.0fi\n", creal(sum), cimag(sum));
    }
    MPI_Op_free(&op);
    MPI_Type_free(&type);
    if (op != MPI_OP_NULL || type != MPI_DATATYPE_NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
    return 0;
}
