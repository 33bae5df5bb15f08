// In C++: the environment and types as objects that clean up, a functor as operation, exceptions.
/*
 * ranks: 3
 * expected:
 *   particles: 3, heaviest 6.5 at (2, 4)
 *   caught: no rank 77
 *   types alive: 0
 */
#include <mpi.h>

#include <cstddef>
#include <iostream>
#include <stdexcept>
#include <string>

struct Particle {
    int x, y;
    double mass;
};

class Environment {
public:
    Environment(int &argc, char **&argv) { MPI_Init(&argc, &argv); }
    Environment(const Environment &) = delete;
    ~Environment() { MPI_Finalize(); }
};

class ParticleType {
public:
    static int alive;
    ParticleType() {
        const int lengths[] = {2, 1};
        const MPI_Aint places[] = {offsetof(Particle, x), offsetof(Particle, mass)};
        const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
        MPI_Type_create_struct(2, lengths, places, types, &type);
        MPI_Type_commit(&type);
        alive++;
    }
    ParticleType(const ParticleType &) = delete;
    ~ParticleType() {
        MPI_Type_free(&type);
        alive--;
    }
    operator MPI_Datatype() const { return type; }

private:
    MPI_Datatype type;
};
int ParticleType::alive = 0;

void heaviest(void *in, void *inout, int *length, MPI_Datatype *) {
    auto *a = static_cast<Particle *>(in), *b = static_cast<Particle *>(inout);
    for (int i = 0; i < *length; i++)
        if (a[i].mass > b[i].mass) b[i] = a[i];
}

void send(const Particle &particle, int dest, const ParticleType &type) {
    if (MPI_Send(&particle, 1, type, dest, 0, MPI_COMM_WORLD) != MPI_SUCCESS)
        throw std::runtime_error("no rank " + std::to_string(dest));
}

int main(int argc, char **argv) {
    Environment environment(argc, argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    {
        ParticleType type;
        MPI_Op op;
        MPI_Op_create(heaviest, 1, &op);
        Particle mine{rank, 2 * rank, 2.5 + 2 * rank}, most{};
        MPI_Reduce(&mine, &most, 1, type, op, 0, MPI_COMM_WORLD);
        MPI_Op_free(&op);
        if (rank == 0)
            std::cout << "particles: " << size << ", heaviest " << most.mass << " at (" << most.x << ", " << most.y << ")\n";
        try {
            send(mine, 77, type);
        } catch (const std::runtime_error &error) {
            if (rank == 0) std::cout << "caught: " << error.what() << "\n";
        }
    }
    if (rank == 0) std::cout << "types alive: " << ParticleType::alive << std::endl;
}
